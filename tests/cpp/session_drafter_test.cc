// Sessions with every drafter, over a model that reads its text back from the KV slots.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "draft/drafters.h"
#include "draft/successor_drafter.h"
#include "drafter_parts.h"
#include "engine/session.h"
#include "fake_model.h"
#include "measure/allocation_counter.h"
#include "session_answer.h"

namespace sapwood {
namespace {

constexpr std::array<Mode, 4> kModes = {Mode::kPlain, Mode::kChain, Mode::kFixed, Mode::kDynamic};

CostGrid cheap_rows() { return {{64}, {1, 64}, {1.0, 1.2}}; }

std::unique_ptr<Session> open_session(std::shared_ptr<Model> model, std::string_view drafter,
                                      CostGrid costs = cheap_rows()) {
  SessionOptions options;
  options.context_length = 600;
  options.max_tree_nodes = 20;
  options.drafter = make_drafter(drafter, parts_of(drafter, *model)).value();
  options.measured_costs = std::move(costs);
  options.learn_costs = false;
  Result<std::unique_ptr<Session>> session = Session::create(std::move(model), std::move(options));
  EXPECT_TRUE(session.ok()) << session.status().message();
  return std::move(session).value();
}

TEST(SessionWithEveryDrafter, EveryModeGivesThePlainText) {
  std::mt19937 random(77);
  std::array<int64_t, kDrafterNames.size()> accepted{};
  for (int round = 0; round < 60; ++round) {
    const FakeModel::Options model{.vocabulary = 8 + static_cast<int>(random() % 60),
                                   .max_rows = 4 + static_cast<int>(random() % 30),
                                   .habit = 4.f + static_cast<float>(random() % 6)};
    const auto shared = std::make_shared<FakeModel>(model);
    GenerateOptions options;
    options.max_new_tokens = 90;
    if (round % 2 == 1) {
      options.sampling = {.temperature = 0.7f,
                          .top_p = round % 3 == 0 ? 0.9f : 1.f,
                          .repetition_penalty = round % 4 == 1 ? 1.1f : 1.f,
                          .seed = random()};
    }
    Text prompt(1 + random() % 20);
    for (int32_t& token : prompt) token = static_cast<int32_t>(random() % model.vocabulary);
    options.mode = Mode::kPlain;
    const Text expected = answer(*open_session(shared, "none"), prompt, options);
    for (size_t d = 0; d < kDrafterNames.size(); ++d) {
      // One session for all modes: what the drafter has learnt must not matter either.
      const std::unique_ptr<Session> session = open_session(shared, kDrafterNames[d]);
      for (const Mode mode : kModes) {
        options.mode = mode;
        ASSERT_EQ(answer(*session, prompt, options), expected)
            << kDrafterNames[d] << ' ' << mode_name(mode) << ' ' << round;
        accepted[d] += session->stats().accepted_tokens;
      }
    }
    ASSERT_EQ(shared->damaged_slots, 0);
  }
  for (size_t d = 0; d < kDrafterNames.size(); ++d) {
    if (kDrafterNames[d] == "none") {
      EXPECT_EQ(accepted[d], 0);
    } else {
      EXPECT_GT(accepted[d], 1000) << kDrafterNames[d];
    }
  }
}

TEST(SessionWithEveryDrafter, WhatTheTargetSaidInOneAnswerDraftsTheNext) {
  const auto model = std::make_shared<FakeModel>(
      FakeModel::Options{.vocabulary = 200, .max_rows = 32, .habit = 9.f});
  GenerateOptions options;
  options.mode = Mode::kDynamic;
  options.max_new_tokens = 60;
  for (const std::string_view drafter : {"successor", "mix"}) {
    const std::unique_ptr<Session> session = open_session(model, drafter);
    const Text first = answer(*session, Text{1, 2, 3}, options);
    const int64_t cold = session->stats().steps;
    // The same question again, with nothing of the answer in its text.
    EXPECT_EQ(answer(*session, Text{1, 2, 3}, options), first);
    EXPECT_LT(session->stats().steps, cold / 2) << drafter;
  }
}

TEST(SessionWithEveryDrafter, TheMixTakesNoMoreStepsThanEitherAloneByMuch) {
  std::mt19937 random(3);
  std::array<int64_t, 3> steps{};
  constexpr std::array<std::string_view, 3> kCompared = {"mix", "ngram", "successor"};
  const auto model = std::make_shared<FakeModel>(
      FakeModel::Options{.vocabulary = 60, .max_rows = 32, .habit = 5.f});
  for (size_t d = 0; d < kCompared.size(); ++d) {
    const std::unique_ptr<Session> session = open_session(model, kCompared[d]);
    std::mt19937 prompts(4);
    for (int round = 0; round < 12; ++round) {
      GenerateOptions options;
      options.mode = Mode::kDynamic;
      options.max_new_tokens = 150;
      options.sampling = {.temperature = 0.6f, .seed = static_cast<uint64_t>(round)};
      Text prompt(5);
      for (int32_t& token : prompt) token = static_cast<int32_t>(prompts() % 60);
      answer(*session, prompt, options);
      steps[d] += session->stats().steps;
    }
  }
  EXPECT_LT(static_cast<double>(steps[0]),
            1.05 * static_cast<double>(std::min(steps[1], steps[2])));
}

TEST(SessionWithEveryDrafter, DearRowsMeanNoDraftAtAll) {
  const auto model = std::make_shared<FakeModel>(
      FakeModel::Options{.vocabulary = 20, .max_rows = 32, .habit = 8.f});
  GenerateOptions options;
  options.mode = Mode::kDynamic;
  options.max_new_tokens = 100;
  const std::unique_ptr<Session> session =
      open_session(model, "mix", {{100, 500}, {1, 2, 32}, {1.0, 2.5, 40.0, 1.5, 3.5, 60.0}});
  answer(*session, Text{1, 2, 3}, options);
  EXPECT_EQ(session->stats().rows_verified, 100);
  EXPECT_TRUE(session->stats().tuned_costs);
}

TEST(EveryDrafter, AllocatesNothingOnceWarm) {
  if (!counts_allocations()) GTEST_SKIP() << "a sanitizer brings its own allocator";
  constexpr int kVocabulary = 3000;
  for (const std::string_view name : kDrafterNames) {
    const FakeModel target(FakeModel::Options{.vocabulary = kVocabulary});
    const std::unique_ptr<Drafter> drafter = make_drafter(name, parts_of(name, target)).value();
    const CostCurve curve = cheap_rows().at(64);
    std::mt19937 random(9);
    Text text = {1, 2, 3, 1, 2, 3};
    text.reserve(2000);
    Text emitted;
    emitted.reserve(64);
    std::vector<float> logits(static_cast<size_t>(kVocabulary) * 32);
    ASSERT_TRUE(drafter->start(text, 2000).ok());
    DraftRequest request;
    request.cost = &curve;
    request.max_nodes = request.max_depth = 31;
    DraftTree tree;
    uint64_t before = 0;
    for (int step = 0; step < 200; ++step) {
      if (step == 2) before = allocations();
      tree.clear();
      ASSERT_TRUE(drafter->propose(request, tree).ok());
      for (float& logit : logits) logit = static_cast<float>(random() % 8);
      emitted.assign({static_cast<int32_t>(random() % 4), static_cast<int32_t>(random() % 4)});
      const size_t text_before = text.size();
      text.insert(text.end(), emitted.begin(), emitted.end());
      drafter->follow(emitted);
      drafter->observe(
          {std::span<const int32_t>(text).first(text_before), tree,
           std::span<const float>(logits).first(static_cast<size_t>(tree.size() + 1) * kVocabulary),
           kVocabulary, emitted});
    }
    EXPECT_EQ(allocations() - before, 0u) << name;
  }
}

TEST(CostGrid, LiesBetweenTheMeasuredContexts) {
  const CostGrid grid{{100, 300}, {1, 8}, {2.0, 4.0, 4.0, 8.0}};
  ASSERT_TRUE(grid.check().ok());
  EXPECT_NEAR(grid.at(100).milliseconds(1), 2.0, 1e-9);
  EXPECT_NEAR(grid.at(200).milliseconds(8), 6.0, 1e-9);
  EXPECT_NEAR(grid.at(400).milliseconds(1), 5.0, 1e-9);
  EXPECT_GE(grid.at(0).milliseconds(1), 1.0);  // and not below half of what was measured
}

TEST(CostGrid, MeasurementsThatCannotBeAreRefused) {
  const std::array<CostGrid, 7> wrong = {{{{}, {1}, {1}},
                                          {{1}, {}, {}},
                                          {{2, 1}, {1}, {1, 1}},
                                          {{1}, {0, 2}, {1, 1}},
                                          {{1}, {1, 1}, {1, 1}},
                                          {{1}, {1, 2}, {1}},
                                          {{1}, {1, 2}, {1, 0}}}};
  for (const CostGrid& grid : wrong) EXPECT_FALSE(grid.check().ok());
}

}  // namespace
}  // namespace sapwood
