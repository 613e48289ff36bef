// A drafter on a thread of its own: what it looks ahead changes no text, what hangs is left behind.
#include <gtest/gtest.h>

#include <array>
#include <chrono>
#include <memory>
#include <random>
#include <string>
#include <thread>
#include <utility>

#include "draft/drafters.h"
#include "drafter_parts.h"
#include "engine/session.h"
#include "fake_draft.h"
#include "fake_model.h"
#include "make_test_bundle.h"
#include "make_test_draft.h"
#include "measure/allocation_counter.h"
#include "model/native.h"
#include "session_answer.h"

namespace sapwood {
namespace {

using std::chrono::milliseconds;

constexpr std::array<Mode, 3> kModes = {Mode::kChain, Mode::kFixed, Mode::kDynamic};
constexpr std::array<std::string_view, 4> kNetworks = {"model", "early-exit", "head", "cascade"};

// Nothing that is meant to be in time misses this, however busy the machine.
constexpr double kPatient = 60;

// A pass that takes as long as the draft needs to look ahead.
std::shared_ptr<FakeModel> slow_target(int vocabulary = 50) {
  auto target = std::make_shared<FakeModel>(
      FakeModel::Options{.vocabulary = vocabulary, .max_rows = 40, .habit = 6.f});
  target->before_pass = [] { std::this_thread::sleep_for(milliseconds(1)); };
  return target;
}

std::unique_ptr<Session> session_of(std::shared_ptr<Model> target, std::unique_ptr<Drafter> drafter,
                                    DoubleBuffer double_buffer, double least_seconds = kPatient,
                                    int context = 400) {
  SessionOptions options;
  options.share_prefixes = false;
  options.draft_thread = true;
  options.double_buffer = double_buffer;
  options.watchdog.least_seconds = least_seconds;
  return session_of(std::move(target), std::move(drafter), context, std::move(options));
}

TEST(DoubleBuffer, ChangesNoTextOfAnyDrafterModeOrTemperature) {
  for (const std::string_view name : kNetworks) {
    const auto target = slow_target();
    const DrafterParts parts = parts_of(name, *target);
    const auto plain = session_of(target, make_drafter("none").value(), DoubleBuffer::kOff);
    const auto session = session_of(target, make_drafter(name, parts).value(), DoubleBuffer::kOn);
    for (const Mode mode : kModes) {
      for (const float temperature : {0.f, 0.9f}) {
        const Text prompt = {3, 10, 17, 24, 3, 10};
        const Text expected = answer(*plain, prompt, answer_options(Mode::kPlain, 60, temperature));
        EXPECT_EQ(answer(*session, prompt, answer_options(mode, 60, temperature)), expected)
            << name << ' ' << mode_name(mode) << ' ' << temperature;
        EXPECT_EQ(session->kv_slots_taken(), 65);
        if (mode == Mode::kDynamic) {
          const SessionStats& stats = session->stats();
          EXPECT_LT(stats.kept_ahead + stats.discarded_ahead, stats.steps) << name;
          EXPECT_LE(stats.hidden_draft_share() > 0 ? 1 : 0, stats.kept_ahead) << name;
        }
      }
    }
    EXPECT_EQ(target->damaged_slots, 0) << name;
    if (parts.draft != nullptr) {
      EXPECT_EQ(static_cast<const FakeDraft&>(*parts.draft).counts->damage, 0) << name;
    }
    EXPECT_EQ(session->stats().missed_deadlines, 0);
  }
}

// With all the time there is: what the text comes to has been looked beyond, or it has not.
TEST(DoubleBuffer, OutcomesAreKeptOrDiscardedAsTheTextGoes) {
  for (const std::string_view name : {"model", "early-exit"}) {
    const auto target = slow_target();
    const auto drafter = make_drafter(name, parts_of(name, *target)).value();
    ASSERT_TRUE(drafter->start(Text{1, 2, 3}, 200).ok());
    const CostCurve cost =
        CostCurve::measured(std::array<int, 2>{1, 64}, std::array<double, 2>{1.0, 1.2});
    DraftRequest request;
    request.max_nodes = 20;
    request.max_depth = 10;
    request.cost = &cost;
    request.looks_ahead = true;
    DraftTree tree;
    ASSERT_TRUE(drafter->propose(request, tree).ok());
    EXPECT_EQ(drafter->came_of_ahead(), Ahead::kNone);
    for (const bool expected : {true, false, true}) {
      ASSERT_FALSE(tree.empty()) << name;
      request.deadline = Clock::now();
      EXPECT_FALSE(drafter->look_ahead(request));  // there is no time
      request.deadline = kNoDeadline;
      int looks = 0;
      while (drafter->look_ahead(request)) ++looks;
      EXPECT_GT(looks, 0);
      if (expected) {
        drafter->follow(std::array{tree.token(0)});
      } else {
        drafter->follow(Text{49, 49, 49, 49});
      }
      tree.clear();
      ASSERT_TRUE(drafter->propose(request, tree).ok());
      EXPECT_EQ(drafter->came_of_ahead(), expected ? Ahead::kKept : Ahead::kDiscarded) << name;
      EXPECT_EQ(drafter->saved_milliseconds() > 0, expected) << name;
    }
  }
}

TEST(DoubleBuffer, WhatIsKeptOfLookingAheadFitsHoweverAnswersGo) {
  std::mt19937 random(23);
  for (int round = 0; round < 6; ++round) {
    const auto target = slow_target();
    const auto draft = std::make_shared<FakeDraft>(
        FakeDraft::Options{.vocabulary = 50, .max_rows = 6 + static_cast<int>(random() % 60)});
    DrafterParts parts{.draft = draft};
    parts.model_options = parts_of("head", *target).model_options;
    const auto session =
        session_of(target, make_drafter(round % 2 == 0 ? "head" : "cascade", parts).value(),
                   DoubleBuffer::kOn);
    const auto plain = session_of(target, make_drafter("none").value(), DoubleBuffer::kOff);
    Text prompt = {1, 2};
    for (int answers = 0; answers < 6; ++answers) {
      if (answers % 3 != 1) prompt.resize(1 + random() % prompt.size());
      for (size_t more = random() % 50; more > 0 && prompt.size() < 200; --more) {
        prompt.push_back(static_cast<int32_t>(random() % 50));
      }
      GenerateOptions options =
          answer_options(random() % 5 == 0 ? Mode::kChain : Mode::kDynamic,
                         1 + static_cast<int>(random() % 40), random() % 2 == 0 ? 0.f : 0.9f);
      if (random() % 6 == 0) options.verifier = Verifier::kTraversal;
      GenerateOptions without = options;
      without.mode = Mode::kPlain;
      const Text expected = answer(*plain, prompt, without);
      const Text found = answer(*session, prompt, options);
      if (options.verifier == Verifier::kTargetDraw || options.sampling.greedy()) {
        ASSERT_EQ(found, expected) << round << ' ' << answers;
      }
      if (random() % 4 == 0) {
        ASSERT_TRUE(session->finish_at(session->stats().emitted_tokens / 2).ok());
      }
      prompt.assign(session->tokens().begin(), session->tokens().end());
      if (prompt.size() > 300) prompt.resize(50);
    }
    EXPECT_EQ(draft->counts->damage, 0);
    EXPECT_EQ(target->damaged_slots, 0);
  }
}

// Drafts grow on the session's thread and on one of their own by turns, and each knows the text.
TEST(DoubleBuffer, MeasuringGoesThroughAllWaysAndChangesNoText) {
  for (const std::string_view name : kNetworks) {
    const auto target = slow_target();
    const auto plain = session_of(target, make_drafter("none").value(), DoubleBuffer::kOff);
    const auto session = session_of(target, make_drafter(name, parts_of(name, *target)).value(),
                                    DoubleBuffer::kMeasured);
    std::array<int, kDraftWays> steps{};
    for (const float temperature : {0.f, 0.9f, 0.f}) {
      const Text prompt = {3, 10, 17, 24, 3, 10};
      const GenerateOptions options = answer_options(Mode::kDynamic, 150, temperature);
      ASSERT_TRUE(session->start(prompt, options).ok());
      Text found;
      for (;;) {
        const std::span<const int32_t> tokens = session->step().value();
        if (tokens.empty()) break;
        found.insert(found.end(), tokens.begin(), tokens.end());
        ++steps[static_cast<size_t>(session->stats().draft_way)];
      }
      EXPECT_EQ(found, answer(*plain, prompt, answer_options(Mode::kPlain, 150, temperature)))
          << name;
      EXPECT_EQ(session->stats().missed_deadlines, 0);
    }
    for (const int of_way : steps) EXPECT_GE(of_way, DraftWayChoice::kBlock) << name;
    EXPECT_EQ(target->damaged_slots, 0) << name;
  }
}

TEST(DoubleBuffer, RealArithmeticGivesTheSameBitsOnTeamsOfTheirOwn) {
  const std::string folder = write_test_bundle(test_bundle_options("llama")).value();
  const std::string trained = write_test_draft(folder, {.kind = DraftKind::kHead}).value();
  const auto bundle = std::make_shared<const Bundle>(Bundle::open(folder).value());
  const std::shared_ptr<Model> target =
      open_native_model(bundle, {.threads = 2, .max_rows = 32}).value();
  const auto draft = open_trained_draft(trained, bundle, {}, {.threads = 2}).value();
  for (const std::string_view name : {"head", "cascade"}) {
    DrafterParts parts{.draft = draft};
    parts.model_options.cost =
        CostCurve::measured(std::array<int, 2>{1, 64}, std::array<double, 2>{0.02, 0.03});
    const auto session =
        session_of(target, make_drafter(name, parts).value(), DoubleBuffer::kOn, kPatient, 120);
    for (const float temperature : {0.f, 0.9f}) {
      const Text prompt = {5, 6, 7, 8, 5, 6};
      const auto plain =
          session_of(target, make_drafter("none").value(), DoubleBuffer::kOff, kPatient, 120);
      const Text expected = answer(*plain, prompt, answer_options(Mode::kPlain, 50, temperature));
      EXPECT_EQ(answer(*session, prompt, answer_options(Mode::kDynamic, 50, temperature)),
                expected);
    }
  }
}

TEST(DoubleBuffer, StepsAllocateNothingOnEitherThread) {
  if (!counts_allocations()) GTEST_SKIP() << "a sanitizer brings its own allocator";
  for (const std::string_view name : {"head", "cascade"}) {
    const auto target = slow_target();
    const auto session =
        session_of(target, make_drafter(name, parts_of(name, *target)).value(), DoubleBuffer::kOn);
    ASSERT_TRUE(session->start(Text{1, 2, 3, 1, 2, 3}, answer_options(Mode::kDynamic, 60)).ok());
    for (int i = 0; i < 3; ++i) ASSERT_TRUE(session->step().ok());
    const uint64_t before = allocations();
    while (session->stop_reason() == StopReason::kNone) {
      if (!session->step().ok()) break;
    }
    EXPECT_EQ(allocations() - before, 0u) << name;
  }
}

// ---- drafters that hang -------------------------------------------------------------------------

enum class Call { kFollow, kObserve, kPropose, kLookAhead };

// Until it is released, the so many-th call of one kind does not come back.
struct Hang {
  Call where = Call::kPropose;
  int after = 0;      // calls of that kind
  bool slow = false;  // comes back by itself
  HostTimeline released;
  HostTimeline ended;

  void pass(Call call) {
    if (call != where || after-- != 0) return;
    if (slow) return std::this_thread::sleep_for(milliseconds(30));
    EXPECT_EQ(released.wait(1, kNoDeadline), Wait::kReached);
  }
};

class Hanging final : public Drafter {
 public:
  explicit Hanging(std::shared_ptr<Hang> hang) : hang_(std::move(hang)) {}
  ~Hanging() override { EXPECT_TRUE(hang_->ended.signal(1).ok()); }
  const DrafterTraits& traits() const override { return traits_; }
  Status start(std::span<const int32_t> tokens, int) override {
    text_.assign(tokens.begin(), tokens.end());
    return Status::okay();
  }
  void follow(std::span<const int32_t> tokens) override {
    hang_->pass(Call::kFollow);
    text_.insert(text_.end(), tokens.begin(), tokens.end());
  }
  void observe(const VerifiedRows& rows) override {
    hang_->pass(Call::kObserve);
    EXPECT_EQ(rows.of(DraftTree::kRoot).size(), static_cast<size_t>(rows.vocabulary));
  }
  Status propose(const DraftRequest& request, DraftTree& tree) override {
    hang_->pass(Call::kPropose);
    int node = DraftTree::kRoot;
    for (int i = 0; i < std::min(request.max_nodes, request.max_depth); ++i) {
      node = tree.add(node, text_[static_cast<size_t>(i) % text_.size()], -1, -1, 0.5f);
    }
    return Status::okay();
  }
  bool look_ahead(const DraftRequest& request) override {
    hang_->pass(Call::kLookAhead);
    return request.max_nodes < 0;
  }

 private:
  DrafterTraits traits_{.name = "hanging", .pass_milliseconds = 0.01};
  const std::shared_ptr<Hang> hang_;
  Text text_;
};

TEST(DraftThread, ADrafterThatHangsIsLeftBehindWithAllThatItCanWriteTo) {
  for (const Call where : {Call::kFollow, Call::kObserve, Call::kPropose, Call::kLookAhead}) {
    for (const int after : {0, 3}) {
      const auto target = slow_target();
      const auto hang = std::make_shared<Hang>();
      hang->where = where;
      hang->after = after;
      const auto plain = session_of(target, make_drafter("none").value(), DoubleBuffer::kOff);
      const auto session =
          session_of(target, std::make_unique<Hanging>(hang), DoubleBuffer::kOn, 0.02);
      const Text prompt = {3, 10, 17};
      const Text expected = answer(*plain, prompt, answer_options(Mode::kPlain, 40));
      EXPECT_EQ(answer(*session, prompt, answer_options(Mode::kDynamic, 40)), expected);
      EXPECT_EQ(session->kv_slots_taken(), 42);
      EXPECT_GE(session->stats().missed_deadlines, 1);
      EXPECT_NE(session->stats().watchdog.find("no drafting in this session"), std::string::npos)
          << session->stats().watchdog;
      // What it does when it comes back, while the session answers again, concerns nobody.
      EXPECT_TRUE(hang->released.signal(1).ok());
      EXPECT_EQ(answer(*session, prompt, answer_options(Mode::kDynamic, 40)), expected);
      EXPECT_EQ(session->stats().drafted_tokens, 0);
      EXPECT_NE(session->stats().watchdog.find("no drafting in this session"), std::string::npos);
      EXPECT_EQ(hang->ended.wait(1, kNoDeadline), Wait::kReached);
      EXPECT_EQ(target->damaged_slots, 0);
    }
  }
}

TEST(DraftThread, ASessionMayEndWhileItsDrafterHangs) {
  const auto hang = std::make_shared<Hang>();
  {
    const auto session =
        session_of(slow_target(), std::make_unique<Hanging>(hang), DoubleBuffer::kOff, 0.01);
    ASSERT_TRUE(session->start(Text{1, 2}, answer_options(Mode::kChain, 10)).ok());
    EXPECT_EQ(session->step().value().size(), 1u);
  }
  EXPECT_EQ(hang->ended.value(), 0u);
  EXPECT_TRUE(hang->released.signal(1).ok());
  EXPECT_EQ(hang->ended.wait(1, kNoDeadline), Wait::kReached);
}

TEST(DraftThread, AFailedPassOfTheTargetLeavesItAtRest) {
  for (int failing = 1; failing < 6; ++failing) {
    const auto target = slow_target();
    const auto session = session_of(target, make_drafter("head", parts_of("head", *target)).value(),
                                    DoubleBuffer::kOn);
    target->fail_pass = failing;
    ASSERT_TRUE(session->start(Text{1, 2, 3}, answer_options(Mode::kDynamic, 30)).ok());
    Status status;
    while (status.ok() && session->stop_reason() == StopReason::kNone) {
      status = session->step().status();
    }
    EXPECT_EQ(status.code(), Code::kInternal);
    target->fail_pass = -1;
    const auto plain = session_of(target, make_drafter("none").value(), DoubleBuffer::kOff);
    EXPECT_EQ(answer(*session, {1, 2, 3}, answer_options(Mode::kDynamic, 30)),
              answer(*plain, {1, 2, 3}, answer_options(Mode::kPlain, 30)));
  }
}

}  // namespace
}  // namespace sapwood
