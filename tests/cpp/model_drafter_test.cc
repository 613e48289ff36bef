#include "draft/model_drafter.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <vector>

#include "draft/mix_drafter.h"
#include "engine/session.h"
#include "fake_model.h"
#include "measure/allocation_counter.h"

namespace sapwood {
namespace {

using Text = std::vector<int32_t>;

CostCurve curve_of(double one, double sixty_four) {
  return CostCurve::measured(std::array<int, 2>{1, 64}, std::array<double, 2>{one, sixty_four});
}

ModelDrafterOptions pass_costs(double one, double sixty_four) {
  return {.cost = curve_of(one, sixty_four), .learn_costs = false};
}

constexpr FakeModel::Options kModel{.vocabulary = 50, .max_rows = 40, .habit = 6.f};

struct Bench {
  std::shared_ptr<FakeModel> target = std::make_shared<FakeModel>(kModel);
  std::shared_ptr<FakeModel> draft = std::make_shared<FakeModel>(kModel);
  ModelDrafter* drafter = nullptr;  // the session's
  std::unique_ptr<Session> session;
};

// A target and a draft that are one and the same model unless `draft` says otherwise.
Bench bench_of(const ModelDrafterOptions& options, const FakeModel::Options& draft = kModel,
               std::unique_ptr<Drafter> first = nullptr, int context = 300) {
  Bench bench;
  bench.draft = std::make_shared<FakeModel>(draft);
  auto drafter = std::make_unique<ModelDrafter>("model", bench.draft, options, std::move(first));
  bench.drafter = drafter.get();
  SessionOptions session;
  session.context_length = context;
  session.drafter = std::move(drafter);
  session.measured_costs = {{64}, {1, 64}, {1.0, 1.2}};
  session.learn_costs = false;
  Result<std::unique_ptr<Session>> made = Session::create(bench.target, std::move(session));
  EXPECT_TRUE(made.ok()) << made.status().message();
  bench.session = std::move(made).value();
  return bench;
}

GenerateOptions options_of(Mode mode, int tokens = 80) {
  GenerateOptions options;
  options.mode = mode;
  options.max_new_tokens = tokens;
  return options;
}

Text answer(Session& session, const Text& prompt, const GenerateOptions& options) {
  EXPECT_TRUE(session.start(prompt, options).ok());
  Text text;
  for (;;) {
    const Result<std::span<const int32_t>> tokens = session.step();
    EXPECT_TRUE(tokens.ok()) << tokens.status().message();
    if (!tokens.ok() || tokens.value().empty()) return text;
    text.insert(text.end(), tokens.value().begin(), tokens.value().end());
  }
}

Text plain_answer(const Text& prompt, const GenerateOptions& options) {
  Bench bench = bench_of(pass_costs(1, 1));
  GenerateOptions plain = options;
  plain.mode = Mode::kPlain;
  return answer(*bench.session, prompt, plain);
}

TEST(ModelDrafter, ATargetThatDraftsForItselfAcceptsEveryChainAndShapeInFull) {
  for (const Mode mode : {Mode::kChain, Mode::kFixed}) {
    Bench bench = bench_of(pass_costs(0.01, 0.02));
    const GenerateOptions options = options_of(mode, 100);
    EXPECT_EQ(answer(*bench.session, {1, 2, 3}, options), plain_answer({1, 2, 3}, options));
    const SessionStats& stats = bench.session->stats();
    if (mode == Mode::kChain) {
      EXPECT_EQ(stats.accepted_tokens, stats.drafted_tokens);
      EXPECT_EQ(stats.steps, 20);  // four guesses and one token more, every time
    } else {
      EXPECT_GT(stats.mean_accepted_length(), 3.0);
    }
    EXPECT_EQ(bench.target->damaged_slots, 0);
    EXPECT_EQ(bench.draft->damaged_slots, 0);
  }
}

TEST(ModelDrafter, PassesThatCostNothingGrowDeepTreesOnceTheyProveRight) {
  Bench bench = bench_of(pass_costs(0.001, 0.002));
  const GenerateOptions options = options_of(Mode::kDynamic, 250);
  EXPECT_EQ(answer(*bench.session, {1, 2, 3}, options), plain_answer({1, 2, 3}, options));
  EXPECT_GT(bench.session->stats().mean_accepted_length(), 8.0);
}

TEST(ModelDrafter, PassesThatCostTooMuchAreTriedSeldomAndLessAndLess) {
  Bench bench = bench_of(pass_costs(5, 6));  // five times a verify pass
  const GenerateOptions options = options_of(Mode::kDynamic, 250);
  EXPECT_EQ(answer(*bench.session, {1, 2, 3}, options), plain_answer({1, 2, 3}, options));
  EXPECT_GE(bench.drafter->passes(), 2);
  EXPECT_LE(bench.drafter->passes(), 10);
}

TEST(ModelDrafter, GuessesThatAreAlwaysWrongChangeNothingAndAreGivenUp) {
  FakeModel::Options other = kModel;
  other.habit = -6.f;  // likes least what the target likes most
  Bench bench = bench_of(pass_costs(0.1, 0.2), other);
  for (const Mode mode : {Mode::kChain, Mode::kFixed, Mode::kDynamic}) {
    const GenerateOptions options = options_of(mode, 200);
    EXPECT_EQ(answer(*bench.session, {1, 2, 3}, options), plain_answer({1, 2, 3}, options));
    EXPECT_LT(bench.session->stats().mean_accepted_length(), 1.1);
  }
  EXPECT_LT(bench.session->stats().rows_verified, 400);  // dynamic: seldom a node
}

TEST(ModelDrafter, AnswersReuseWhatTheDraftHasReadOfThePromptsBefore) {
  Bench bench = bench_of(pass_costs(0.01, 0.02));
  Text prompt(100);
  for (size_t i = 0; i < prompt.size(); ++i) prompt[i] = static_cast<int32_t>(i * i % 50);
  const GenerateOptions options = options_of(Mode::kChain, 20);
  const Text first = answer(*bench.session, prompt, options);
  Text second = prompt;
  second.insert(second.end(), first.begin(), first.end());
  second.insert(second.end(), {7, 8, 9});
  const int64_t before = bench.draft->rows;
  EXPECT_EQ(answer(*bench.session, second, options), plain_answer(second, options));
  EXPECT_LT(bench.draft->rows - before, 60);  // of 123 tokens of prompt and 20 of answer
  // And a text that has nothing of it.
  EXPECT_EQ(answer(*bench.session, {9, 9}, options), plain_answer({9, 9}, options));
  EXPECT_EQ(bench.draft->damaged_slots, 0);
}

TEST(ModelDrafter, AContextThatFillsUpEndsTheTextAndNothingIsDraftedBeyondTheDraftsOwn) {
  FakeModel::Options small = kModel;
  small.context_length = 60;
  for (const Mode mode : {Mode::kChain, Mode::kFixed, Mode::kDynamic}) {
    Bench bench = bench_of(pass_costs(0.01, 0.02), small, nullptr, 120);
    const GenerateOptions options = options_of(mode, 1000);
    const Text text = answer(*bench.session, {1, 2, 3, 4}, options);
    EXPECT_EQ(text.size(), 116u);
    EXPECT_EQ(bench.session->stop_reason(), StopReason::kContext);
    const Text plain = plain_answer({1, 2, 3, 4}, options_of(mode, 116));
    EXPECT_EQ(text, plain);
    EXPECT_EQ(bench.draft->highest_position, 59);
    // A prompt that is longer than the draft's context is answered without it.
    const int64_t rows = bench.draft->rows;
    Text prompt(70, 3);
    EXPECT_EQ(answer(*bench.session, prompt, options_of(mode, 20)),
              plain_answer(prompt, options_of(mode, 20)));
    EXPECT_EQ(bench.draft->rows, rows);
  }
}

TEST(ModelDrafter, CancellingInTheMiddleLeavesASessionThatGoesOn) {
  Bench bench = bench_of(pass_costs(0.01, 0.02));
  const GenerateOptions options = options_of(Mode::kDynamic, 60);
  int passes = 0;
  bench.draft->before_pass = [&] {
    if (++passes == 9) bench.session->cancel();
  };
  answer(*bench.session, {4, 5, 6}, options);
  EXPECT_EQ(bench.session->stop_reason(), StopReason::kCancelled);
  EXPECT_EQ(answer(*bench.session, {4, 5, 6}, options), plain_answer({4, 5, 6}, options));
}

TEST(ModelDrafter, ADraftPassThatFailsCostsTheDraftAloneUntilTheNextAnswer) {
  Bench bench = bench_of(pass_costs(0.01, 0.02));
  const GenerateOptions options = options_of(Mode::kDynamic, 60);
  bench.draft->fail_pass = 5;
  EXPECT_EQ(answer(*bench.session, {4, 5, 6}, options), plain_answer({4, 5, 6}, options));
  EXPECT_NE(bench.session->stats().watchdog.find("this pass was told to fail"), std::string::npos);
  EXPECT_EQ(answer(*bench.session, {4, 5, 6}, options), plain_answer({4, 5, 6}, options));
  EXPECT_TRUE(bench.session->stats().watchdog.empty());
  EXPECT_EQ(bench.draft->damaged_slots, 0);
}

TEST(ModelDrafter, WhatItPromisesIsWhatComes) {
  FakeModel::Options other = kModel;
  other.habit = 2.5f;
  Bench bench = bench_of(pass_costs(0.02, 0.03), other);
  double promised = 0;
  int64_t accepted = 0;
  for (int round = 0; round < 20; ++round) {
    GenerateOptions options = options_of(Mode::kDynamic, 150);
    options.sampling = {.temperature = 0.8f, .seed = static_cast<uint64_t>(round)};
    ASSERT_TRUE(bench.session->start(Text{static_cast<int32_t>(round), 2}, options).ok());
    while (bench.session->stop_reason() == StopReason::kNone) {
      const int64_t before = bench.session->stats().accepted_tokens;
      ASSERT_TRUE(bench.session->step().ok());
      if (round < 8) continue;
      promised += bench.session->last_tree().expected_tokens() - 1;
      accepted += bench.session->stats().accepted_tokens - before;
    }
  }
  EXPECT_GT(accepted, 500);
  EXPECT_NEAR(promised / static_cast<double>(accepted), 1.0, 0.2);
}

TEST(ModelDrafter, DrawnFromTheTargetsOwnLawAlmostEveryGuessIsAccepted) {
  FakeModel::Options few = kModel;
  few.vocabulary = 30;  // so that a proposal can hold it all
  for (const Verifier verifier : {Verifier::kRejection, Verifier::kTraversal, Verifier::kBlock}) {
    auto drafter =
        std::make_unique<ModelDrafter>("model", std::make_shared<FakeModel>(few), pass_costs(1, 1));
    SessionOptions options;
    options.context_length = 1000;
    options.drafter = std::move(drafter);
    const auto session = Session::create(std::make_shared<FakeModel>(few), std::move(options));
    ASSERT_TRUE(session.ok());
    GenerateOptions generate = options_of(Mode::kChain, 900);
    generate.verifier = verifier;
    generate.sampling = {.temperature = 1.3f, .top_p = 0.98f, .repetition_penalty = 1.2f};
    generate.controller = {.beta_base = 0, .rho_min = 0, .max_tree_width = 30};  // prunes nothing
    answer(*session.value(), {1, 2, 3}, generate);
    const SessionStats& stats = session.value()->stats();
    EXPECT_GT(stats.drafted_tokens, 600);
    EXPECT_GT(static_cast<double>(stats.accepted_tokens),
              0.999 * static_cast<double>(stats.drafted_tokens))
        << verifier_name(verifier);
  }
}

TEST(ModelDrafter, DrawingAllocatesNothingOnceWarm) {
  if (!counts_allocations()) GTEST_SKIP() << "a sanitizer brings its own allocator";
  Bench bench = bench_of(pass_costs(0.01, 0.02), kModel, std::make_unique<MixDrafter>());
  GenerateOptions options = options_of(Mode::kDynamic, 200);
  options.sampling = {.temperature = 1.f, .top_k = 20, .repetition_penalty = 1.1f};
  options.verifier = Verifier::kTraversal;
  ASSERT_TRUE(bench.session->start(Text{1, 2, 3}, options).ok());
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(bench.session->step().ok());
  const uint64_t before = allocations();
  while (bench.session->stop_reason() == StopReason::kNone) {
    if (!bench.session->step().ok()) break;
  }
  EXPECT_EQ(allocations() - before, 0u);
  EXPECT_GT(bench.drafter->passes(), 10);
}

TEST(ModelDrafter, TheSameHistoryGivesTheSameTreesWhenCostsAreNotLearnt) {
  std::string first;
  for (int round = 0; round < 2; ++round) {
    Bench bench = bench_of(pass_costs(0.02, 0.03));
    std::string trees;
    ASSERT_TRUE(bench.session->start(Text{1, 2, 3}, options_of(Mode::kDynamic, 60)).ok());
    while (bench.session->stop_reason() == StopReason::kNone) {
      ASSERT_TRUE(bench.session->step().ok());
      trees += bench.session->last_tree().to_json();
    }
    if (round == 0) first = trees;
    EXPECT_EQ(trees, first);
  }
}

TEST(ModelDrafter, AnotherVocabularyIsRefusedByTheSession) {
  FakeModel::Options other = kModel;
  other.vocabulary = 51;
  SessionOptions options;
  options.context_length = 100;
  options.drafter = std::make_unique<ModelDrafter>("model", std::make_shared<FakeModel>(other));
  const auto session = Session::create(std::make_shared<FakeModel>(kModel), std::move(options));
  EXPECT_EQ(session.status().code(), Code::kInvalidArgument);
  EXPECT_NE(session.status().message().find("51"), std::string::npos);
}

TEST(Cascade, AsksTheModelOnlyWhereTheFirstDrafterLeavesSomethingOpen) {
  Bench bench = bench_of(pass_costs(0.3, 0.4), kModel, std::make_unique<MixDrafter>(), 600);
  const GenerateOptions options = options_of(Mode::kDynamic, 300);
  const Text first = answer(*bench.session, {1, 2, 3}, options);
  const int64_t passes = bench.drafter->passes();
  EXPECT_GT(passes, 100);
  // The same question again: the mix knows what the target said, and passes cost something.
  EXPECT_EQ(answer(*bench.session, {1, 2, 3}, options), first);
  EXPECT_LT(bench.drafter->passes() - passes, passes / 3);
  EXPECT_GT(bench.session->stats().mean_accepted_length(), 3.0);
}

TEST(Cascade, OneTreeHoldsTheGuessesOfBothAndNoneTwice) {
  FakeModel::Options other = kModel;
  other.habit = 4.f;
  Bench bench = bench_of(pass_costs(0.01, 0.02), other, std::make_unique<MixDrafter>());
  for (const Mode mode : {Mode::kChain, Mode::kFixed, Mode::kDynamic}) {
    const GenerateOptions options = options_of(mode, 250);
    EXPECT_EQ(answer(*bench.session, {1, 2, 3}, options), plain_answer({1, 2, 3}, options));
    EXPECT_GT(bench.session->stats().mean_accepted_length(), 2.0) << mode_name(mode);
  }
  EXPECT_GT(bench.drafter->passes(), 10);
}

}  // namespace
}  // namespace sapwood
