// The session over the native host: real arithmetic, small random models.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <vector>

#include "engine/session.h"
#include "make_test_bundle.h"
#include "measure/allocation_counter.h"
#include "model/native.h"
#include "session_answer.h"

namespace sapwood {
namespace {

constexpr std::array<Mode, 4> kModes = {Mode::kPlain, Mode::kChain, Mode::kFixed, Mode::kDynamic};

std::shared_ptr<Model> open_model(std::string_view family) {
  Result<std::string> path = write_test_bundle(test_bundle_options(family));
  EXPECT_TRUE(path.ok()) << path.status().message();
  Result<Bundle> bundle = Bundle::open(path.value());
  EXPECT_TRUE(bundle.ok()) << bundle.status().message();
  Result<std::unique_ptr<Model>> model = open_native_model(
      std::make_shared<const Bundle>(std::move(bundle).value()), {.threads = 1, .max_rows = 32});
  EXPECT_TRUE(model.ok()) << model.status().message();
  return std::move(model).value();
}

std::unique_ptr<Session> open_session(std::shared_ptr<Model> model,
                                      KvFormat kv = KvFormat::kFloat16) {
  SessionOptions options;
  options.kv = kv;
  options.context_length = 128;
  options.learn_costs = false;
  // Rows for nothing: the tree always grows to what there is to guess.
  options.cost_curve =
      CostCurve::measured(std::array<int, 2>{1, 64}, std::array<double, 2>{1.0, 1.0});
  Result<std::unique_ptr<Session>> session = Session::create(std::move(model), std::move(options));
  EXPECT_TRUE(session.ok()) << session.status().message();
  return std::move(session).value();
}

// Expects the same text of every mode, at several temperatures; returns what was accepted in all.
int64_t accepted_by_equal_texts(const std::string& family, KvFormat kv) {
  const std::shared_ptr<Model> model = open_model(family);
  int64_t accepted = 0;
  for (const float temperature : {0.f, 0.7f, 1.5f}) {
    Text first;
    for (const Mode mode : kModes) {
      GenerateOptions options;
      options.mode = mode;
      options.max_new_tokens = 80;
      options.sampling = {.temperature = temperature, .seed = 3};
      // A fresh session each: nothing may hang on what an earlier mode left in the cache.
      const std::unique_ptr<Session> session = open_session(model, kv);
      const Text text = answer(*session, {5, 6, 7, 8, 5, 6, 7, 8, 5, 6}, options);
      EXPECT_EQ(text.size(), 80u);
      if (first.empty()) first = text;
      EXPECT_EQ(text, first) << family << ' ' << mode_name(mode) << ' ' << temperature;
      accepted += session->stats().accepted_tokens;
    }
  }
  return accepted;
}

TEST(SessionOverTheNativeHost, EveryModeGivesTheSameTextInEveryFamilyAndCacheFormat) {
  for (const std::string family : {"llama", "qwen2", "qwen3", "gemma3"}) {
    for (const KvFormat kv : {KvFormat::kFloat16, KvFormat::kInt8}) {
      EXPECT_GT(accepted_by_equal_texts(family, kv), 20)
          << family << ' ' << kv_format_name(kv) << ": nothing was tested";
    }
  }
}

// Steps once warm, and what they allocated.
uint64_t allocated_by_steps(const std::shared_ptr<Model>& model, const GenerateOptions& options,
                            KvFormat kv = KvFormat::kFloat16) {
  const std::unique_ptr<Session> session = open_session(model, kv);
  EXPECT_TRUE(session->start(Text{1, 2, 3, 1, 2, 3, 1}, options).ok());
  EXPECT_FALSE(session->step().value().empty());
  const uint64_t before = allocations();
  int steps = 0;
  for (; session->stop_reason() == StopReason::kNone; ++steps) {
    if (!session->step().ok()) break;
  }
  const uint64_t allocated = allocations() - before;
  EXPECT_GT(steps, 3);
  EXPECT_EQ(session->stop_reason(), StopReason::kLength);
  return allocated;
}

TEST(SessionOverTheNativeHost, StepsAllocateNothingOnceWarm) {
  if (!counts_allocations()) GTEST_SKIP() << "a sanitizer brings its own allocator";
  const std::shared_ptr<Model> model = open_model("llama");
  for (const Mode mode : kModes) {
    for (const float temperature : {0.f, 0.9f}) {
      for (const Verifier verifier :
           {Verifier::kTargetDraw, Verifier::kRejection, Verifier::kTraversal, Verifier::kBlock}) {
        if (verifier == Verifier::kBlock && mode == Mode::kFixed) continue;
        GenerateOptions options;
        options.mode = mode;
        options.verifier = verifier;
        options.adapt = true;
        options.max_new_tokens = 100;
        options.sampling = {.temperature = temperature, .top_k = 30, .top_p = 0.9f, .seed = 11};
        options.sampling.repetition_penalty = temperature > 0 ? 1.1f : 1.f;
        EXPECT_EQ(allocated_by_steps(model, options), 0u)
            << mode_name(mode) << ' ' << temperature << ' ' << verifier_name(verifier);
      }
    }
  }
  GenerateOptions options;
  options.max_new_tokens = 100;
  EXPECT_EQ(allocated_by_steps(model, options, KvFormat::kInt8), 0u);
  const uint64_t before = allocations();
  ::operator delete(::operator new(8));  // called by name: may not be optimised away
  EXPECT_EQ(allocations() - before, 1u) << "the counter counts";
}

}  // namespace
}  // namespace sapwood
