#include "engine/adaptation.h"

#include <gtest/gtest.h>

#include <array>
#include <memory>
#include <random>
#include <vector>

#include "engine/session.h"
#include "fake_model.h"

namespace sapwood {
namespace {

TEST(Fallback, OneFailureDraftsAChainAndASuccessEndsThat) {
  Fallback fallback;
  EXPECT_EQ(fallback.plan(), Fallback::Plan::kAsAsked);
  fallback.observe(8, 0, 1);
  EXPECT_EQ(fallback.plan(), Fallback::Plan::kChain);
  fallback.observe(4, 1, 2);
  EXPECT_EQ(fallback.plan(), Fallback::Plan::kAsAsked);
  EXPECT_EQ(fallback.soft(), 1);
  EXPECT_EQ(fallback.hard(), 0);
}

// Tokens decoded plainly until drafting is tried again.
int cool_down(Fallback& fallback) {
  int tokens = 0;
  for (; fallback.plan() == Fallback::Plan::kPlain; ++tokens) fallback.observe(0, 0, 1);
  return tokens;
}

TEST(Fallback, FailuresInARowCoolDownForTwiceAsLongEachTimeUpToALimit) {
  Fallback fallback;
  fallback.observe(8, 0, 1);
  fallback.observe(4, 0, 1);
  EXPECT_EQ(fallback.hard(), 1);
  for (const int expected : {8, 16, 32, 64, 128, 256, 256}) {
    EXPECT_EQ(cool_down(fallback), expected);
    EXPECT_EQ(fallback.plan(), Fallback::Plan::kChain);  // a trial
    fallback.observe(4, 0, 1);                           // a relapse
  }
  EXPECT_EQ(cool_down(fallback), 256);
  fallback.observe(4, 2, 3);  // a success
  EXPECT_EQ(fallback.plan(), Fallback::Plan::kAsAsked);
  fallback.observe(4, 0, 1);
  fallback.observe(4, 0, 1);
  EXPECT_EQ(cool_down(fallback), 8);
}

TEST(Fallback, NothingDraftedIsNoFailure) {
  Fallback fallback;
  for (int i = 0; i < 10; ++i) fallback.observe(0, 0, 1);
  EXPECT_EQ(fallback.plan(), Fallback::Plan::kAsAsked);
}

TEST(ChainLength, GrowsWhileGuessesComeTrueAndShrinksWhileTheyDoNot) {
  ChainLength length;
  length.start(4, 6);
  for (int i = 0; i < 50; ++i) length.observe(length.length(), length.length());
  EXPECT_EQ(length.length(), 6);
  for (int i = 0; i < 100; ++i) length.observe(length.length(), 0);
  EXPECT_EQ(length.length(), 1);
  length.start(4, 6);
  for (int i = 0; i < 100; ++i) length.observe(10, 7);  // between the two limits
  EXPECT_EQ(length.length(), 4);
}

TEST(ChainLength, AWindowIsOfOneLength) {
  ChainLength length;
  length.start(2, 8);
  for (int i = 0; i < ChainLength::kWindow; ++i) {
    EXPECT_EQ(length.length(), 2);
    length.observe(2, 2);
  }
  EXPECT_EQ(length.length(), 3);
  length.observe(3, 3);
  EXPECT_EQ(length.length(), 3);
}

TEST(BetaTuner, PrunesMoreWhileStepsAreShortAndStaysWithinItsLimits) {
  BetaTuner tuner(0.3, 0.05, 0.9);
  tuner.observe(1);
  EXPECT_NEAR(tuner.beta(), 0.3 * (1 + 0.1 * 2.5), 1e-12);
  for (int i = 0; i < 100; ++i) tuner.observe(1);
  EXPECT_DOUBLE_EQ(tuner.beta(), 0.9);
  for (int i = 0; i < 200; ++i) tuner.observe(9);
  EXPECT_DOUBLE_EQ(tuner.beta(), 0.05);
  BetaTuner steady(0.3, 0.05, 0.9);
  for (int i = 0; i < 10; ++i) {
    steady.observe(3);
    steady.observe(4);
  }
  EXPECT_NEAR(steady.beta(), 0.3, 0.02);
}

std::vector<int32_t> answer(Session& session, const GenerateOptions& options) {
  EXPECT_TRUE(session.start(std::vector<int32_t>{1, 2, 3, 1, 2, 3, 1}, options).ok());
  std::vector<int32_t> text;
  for (;;) {
    const auto tokens = session.step();
    EXPECT_TRUE(tokens.ok());
    if (!tokens.ok() || tokens.value().empty()) return text;
    text.insert(text.end(), tokens.value().begin(), tokens.value().end());
  }
}

TEST(SessionThatAdapts, SaysTheSameAndDraftsLessOfWhatFails) {
  // Nothing repeats: every guess is in vain.
  const auto model = std::make_shared<FakeModel>(
      FakeModel::Options{.vocabulary = 40, .max_rows = 32, .habit = 0.f});
  for (const float temperature : {0.f, 0.9f}) {
    GenerateOptions options;
    options.max_new_tokens = 150;
    options.sampling = {.temperature = temperature, .seed = 5};
    options.mode = Mode::kPlain;
    const auto open = [&] {
      SessionOptions session;
      session.context_length = 300;
      return Session::create(model, std::move(session)).value();
    };
    const std::vector<int32_t> plain = answer(*open(), options);
    for (const Mode mode : {Mode::kChain, Mode::kFixed, Mode::kDynamic}) {
      options.mode = mode;
      options.adapt = false;
      const std::unique_ptr<Session> rigid = open();
      EXPECT_EQ(answer(*rigid, options), plain);
      options.adapt = true;
      const std::unique_ptr<Session> adapting = open();
      EXPECT_EQ(answer(*adapting, options), plain);
      if (mode == Mode::kDynamic) {
        EXPECT_EQ(adapting->stats().hard_fallbacks, 0);  // its budget does that
      } else {
        EXPECT_GT(adapting->stats().hard_fallbacks, 0);
        EXPECT_LT(adapting->stats().drafted_tokens, rigid->stats().drafted_tokens / 2);
        EXPECT_EQ(rigid->stats().hard_fallbacks + rigid->stats().soft_fallbacks, 0);
      }
    }
  }
  EXPECT_EQ(model->damaged_slots, 0);
}

}  // namespace
}  // namespace sapwood
