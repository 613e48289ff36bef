// Sessions that switch strategy: the text is the same at every step and in every mode, and each
// change is in trace and statistics with its reason.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <memory>
#include <optional>
#include <random>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include "draft/drafters.h"
#include "drafter_parts.h"
#include "measure/allocation_counter.h"
#include "session_fixture.h"

namespace sapwood {
namespace {

const Text kPrompt = {1, 2, 3, 1, 2, 3, 1, 2};
constexpr int kContext = 512;
constexpr double kPatient = 60;  // seconds: nothing misses that, however busy the machine

GenerateOptions options_of(Mode mode, float temperature = 0) {
  GenerateOptions options;
  options.mode = mode;
  options.max_new_tokens = 80;
  options.sampling.temperature = temperature;
  options.sampling.seed = 5;
  return options;
}

// The session's answer with another strategy forced before every step.
Text switched_at_every_step(Session& session, const GenerateOptions& options, uint32_t seed) {
  std::mt19937 random(seed);
  EXPECT_TRUE(session.start(kPrompt, options).ok());
  Text text;
  for (;;) {
    session.force(static_cast<Strategy>(random() % kStrategies));
    const Result<std::span<const int32_t>> tokens = session.step();
    EXPECT_TRUE(tokens.ok()) << tokens.status().message();
    if (!tokens.ok() || tokens.value().empty()) return text;
    text.insert(text.end(), tokens.value().begin(), tokens.value().end());
  }
}

TEST(SessionStrategy, TheTextIsTheSameWithSwitchesForcedAtEveryStepInEveryMode) {
  for (const float temperature : {0.f, 0.9f}) {
    for (const Mode mode : {Mode::kPlain, Mode::kChain, Mode::kFixed, Mode::kDynamic}) {
      for (uint32_t seed = 0; seed < 6; ++seed) {
        SessionFixture fixture;
        const GenerateOptions options = options_of(mode, temperature);
        const Text expected = plain_answer(*fixture.model, kPrompt, options, kContext);
        EXPECT_EQ(switched_at_every_step(*fixture.session, options, seed), expected)
            << mode_name(mode) << ' ' << temperature;
        EXPECT_EQ(fixture.model->damaged_slots, 0);
        const SessionStats& stats = fixture.session->stats();
        EXPECT_EQ(stats.strategy_changes > 5, mode != Mode::kPlain);
      }
    }
  }
}

TEST(SessionStrategy, TheTextIsTheSameWhileADraftOfItsOwnThreadLooksAhead) {
  for (const DoubleBuffer double_buffer : {DoubleBuffer::kOff, DoubleBuffer::kOn}) {
    for (const Mode mode : {Mode::kChain, Mode::kFixed, Mode::kDynamic}) {
      const auto model = std::make_shared<FakeModel>(FakeModel::Options());
      SessionOptions options;
      options.context_length = kContext;
      options.max_tree_nodes = 15;
      options.cost_curve = cheap_rows();
      options.learn_costs = false;
      options.drafter = make_drafter("model", parts_of("model", *model)).value();
      options.draft_thread = true;
      options.double_buffer = double_buffer;
      options.watchdog.least_seconds = kPatient;
      const auto session = Session::create(model, std::move(options)).value();
      const GenerateOptions generate = options_of(mode);
      const Text expected = plain_answer(*model, kPrompt, generate, kContext);
      for (uint32_t seed = 0; seed < 4; ++seed) {
        EXPECT_EQ(switched_at_every_step(*session, generate, seed), expected) << mode_name(mode);
        EXPECT_EQ(session->stats().watchdog, "");
      }
    }
  }
}

TEST(SessionStrategy, EveryStrategyDraftsWhatItSays) {
  SessionFixture fixture;
  const GenerateOptions options = options_of(Mode::kDynamic);
  for (int i = 0; i < kStrategies; ++i) {
    const auto strategy = static_cast<Strategy>(i);
    fixture.session->force(strategy);
    ASSERT_TRUE(fixture.session->start(kPrompt, options).ok());
    int most = 0;
    while (!fixture.session->step().value().empty()) {
      const DraftTree& tree = fixture.session->last_tree();
      most = std::max(most, tree.size());
      if (strategy >= Strategy::kChain) {
        EXPECT_EQ(tree.size(), tree.max_depth());
      }
    }
    const SessionStats& stats = fixture.session->stats();
    EXPECT_EQ(stats.strategy.strategy, strategy);
    EXPECT_EQ(most > 0, strategy != Strategy::kPlain);
    EXPECT_LE(most, strategy == Strategy::kNarrow  ? 8
                    : strategy == Strategy::kChain ? options.chain_length
                                                   : 15);
  }
}

std::vector<TraceEvent> changes_of(const TraceRing& ring, TraceName name) {
  std::vector<TraceEvent> changes;
  for (const TraceEvent& event : ring.snapshot()) {
    if (event.name == name) changes.push_back(event);
  }
  return changes;
}

// The heat script of MATH.md, section 7: from 40 C to 60 C and back while an answer is made.
TEST(SessionStrategy, AHeatScriptGoesThroughEveryStateOnceEachWayInTraceAndStatistics) {
  SessionFixture fixture;
  const auto ring = std::make_shared<TraceRing>(1 << 15);
  fixture.session->record_into(ring);
  GenerateOptions options = options_of(Mode::kDynamic);
  options.max_new_tokens = 400;
  const Text expected = plain_answer(*fixture.model, kPrompt, options, kContext);
  ASSERT_TRUE(fixture.session->start(kPrompt, options).ok());
  Text text;
  std::vector<Reason> reasons;  // of the statistics, whenever they changed
  for (int tick = 0; tick <= 800; ++tick) {
    const double seconds = tick * 0.1;
    const double ramp = 40 + seconds / 2;
    const Heat before = fixture.session->stats().heat;
    fixture.session->observe({.celsius = static_cast<float>(seconds <= 40 ? ramp : 100 - ramp)},
                             seconds);
    const SessionStats& stats = fixture.session->stats();
    if (stats.heat != before) reasons.push_back(stats.heat_reason);
    if (tick % 3 != 0) continue;
    const auto tokens = fixture.session->step();
    ASSERT_TRUE(tokens.ok());
    text.insert(text.end(), tokens.value().begin(), tokens.value().end());
  }
  const Text rest = fixture.answer();
  text.insert(text.end(), rest.begin(), rest.end());
  EXPECT_EQ(text, expected);
  constexpr std::array<Heat, 6> kStates = {Heat::kWarm, Heat::kHot,  Heat::kCritical,
                                           Heat::kHot,  Heat::kWarm, Heat::kCool};
  const std::vector<TraceEvent> changes = changes_of(*ring, TraceName::kHeatChange);
  ASSERT_EQ(changes.size(), kStates.size());
  ASSERT_EQ(reasons.size(), kStates.size());
  for (size_t i = 0; i < kStates.size(); ++i) {
    EXPECT_EQ(static_cast<Heat>(changes[i].value), kStates[i]);
    const Reason reason = i < 3 ? Reason::kTemperature : Reason::kRecovered;
    EXPECT_EQ(static_cast<Reason>(changes[i].reason), reason);
    EXPECT_EQ(reasons[i], reason);
  }
}

TEST(SessionStrategy, WhatDeviceAndWatchdogAskForIsAChangeOfStrategyWithItsReason) {
  SessionFixture fixture;
  const auto ring = std::make_shared<TraceRing>(1 << 15);
  fixture.session->record_into(ring);
  GenerateOptions options = options_of(Mode::kDynamic);
  options.max_new_tokens = 400;
  ASSERT_TRUE(fixture.session->start(kPrompt, options).ok());
  const auto step_with = [&](const DeviceReadings& readings, double seconds) {
    fixture.session->observe(readings, seconds);
    ASSERT_TRUE(fixture.session->step().ok());
  };
  step_with({.celsius = 30.f, .trim_level = 10}, 0);
  step_with({.celsius = 30.f, .trim_level = 15}, 1);
  step_with({.celsius = 60.f, .trim_level = 15}, 2);
  for (int second = 3; second < 20; ++second) {
    step_with({.celsius = 30.f, .trim_level = 0}, second);
  }
  std::vector<std::pair<Strategy, Reason>> changes;
  for (const TraceEvent& event : changes_of(*ring, TraceName::kStrategyChange)) {
    changes.emplace_back(static_cast<Strategy>(event.value), static_cast<Reason>(event.reason));
  }
  const std::vector<std::pair<Strategy, Reason>> expected = {
      {Strategy::kNarrow, Reason::kMemoryPressure},
      {Strategy::kChain, Reason::kMemoryPressure},
      {Strategy::kPlain, Reason::kTemperature},
      {Strategy::kNarrow, Reason::kRecovered},
      {Strategy::kAsAsked, Reason::kRecovered}};
  EXPECT_EQ(changes, expected);
  EXPECT_EQ(fixture.session->stats().strategy_changes, 5);
}

// A target whose passes take long enough for the clock to judge them, a row at a time.
void sleep_by_rows(FakeModel& model) {
  auto rows_before = std::make_shared<int64_t>(0);
  model.before_pass = [&model, rows_before] {
    const int64_t rows = model.rows - *rows_before;  // of the pass before this one
    *rows_before = model.rows;
    std::this_thread::sleep_for(std::chrono::microseconds(200 * rows));
  };
}

std::unique_ptr<Session> with_guesses(const std::shared_ptr<FakeModel>& model, Text guesses) {
  SessionOptions options;
  options.context_length = kContext;
  options.max_tree_nodes = 15;
  // What a row is known to cost: a tree that grows as far as it pays is small.
  options.cost_curve =
      CostCurve::measured(std::array<int, 2>{1, 16}, std::array<double, 2>{0.2, 3.2});
  options.learn_costs = false;
  options.drafter = std::make_unique<Oracle>(std::move(guesses), false);
  options.watchdog.least_seconds = kPatient;
  return Session::create(model, std::move(options)).value();
}

TEST(SessionStrategy, GuessesThatAlwaysFailEndInPlainDecodingWhichTheClockSaysIsFaster) {
  const auto model = std::make_shared<FakeModel>(FakeModel::Options());
  GenerateOptions options = options_of(Mode::kFixed);
  options.strategy.least_accepted_length = 1.5;
  const Text expected = plain_answer(*model, kPrompt, options, kContext);
  Text wrong = expected;
  for (int32_t& token : wrong) token = (token + 1) % model->spec().vocabulary_size;
  const auto session = with_guesses(model, wrong);
  const auto ring = std::make_shared<TraceRing>(1 << 15);
  session->record_into(ring);
  sleep_by_rows(*model);
  EXPECT_EQ(answer(*session, kPrompt, options), expected);
  EXPECT_EQ(session->stats().strategy.strategy, Strategy::kPlain);
  EXPECT_EQ(session->stats().strategy.reason, Reason::kAcceptedLength);
  const std::vector<TraceEvent> changes = changes_of(*ring, TraceName::kStrategyChange);
  ASSERT_EQ(changes.size(), 2u) << "a chain was tried first";
  EXPECT_EQ(changes[0].step, StrategySwitch::kWindow + 1);
  EXPECT_EQ(static_cast<Strategy>(changes[0].value), Strategy::kChain);
  EXPECT_EQ(static_cast<Reason>(changes[1].reason), Reason::kAcceptedLength);
}

TEST(SessionStrategy, TheOptionsAreChecked) {
  SessionFixture fixture;
  GenerateOptions options = options_of(Mode::kDynamic);
  options.strategy.least_accepted_length = -1;
  EXPECT_EQ(fixture.session->start(kPrompt, options).code(), Code::kInvalidArgument);
  options.strategy = {.target_milliseconds = std::nan("")};
  EXPECT_EQ(fixture.session->start(kPrompt, options).code(), Code::kInvalidArgument);
}

TEST(SessionStrategy, SwitchingAllocatesNothing) {
  if (!counts_allocations()) GTEST_SKIP() << "a sanitizer brings its own allocator";
  SessionFixture fixture;
  GenerateOptions options = options_of(Mode::kDynamic);
  options.max_new_tokens = 300;
  options.strategy = {.least_accepted_length = 100, .target_milliseconds = 1e-6};
  ASSERT_TRUE(fixture.session->start(kPrompt, options).ok());
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(fixture.session->step().ok());
  const uint64_t before = allocations();
  int step = 0;
  while (fixture.session->stop_reason() == StopReason::kNone) {
    fixture.session->force(static_cast<Strategy>(step++ % kStrategies));
    ASSERT_TRUE(fixture.session->step().ok());
  }
  EXPECT_EQ(allocations(), before);
}

}  // namespace
}  // namespace sapwood
