// Switching between strategies by what they are measured to bring, on a clock of the tests' own.
#include "engine/strategy.h"

#include <gtest/gtest.h>

#include <array>
#include <functional>
#include <string>
#include <vector>

namespace sapwood {
namespace {

// What a step of each strategy brings and costs.
struct Pace {
  int drafted = 4;
  int emitted = 1;
  double seconds = 0.010;
};
using Device = std::function<Pace(Strategy)>;

struct Change {
  int step;
  Strategy strategy;
  Reason reason;
  bool operator==(const Change&) const = default;
};
std::ostream& operator<<(std::ostream& out, const Change& change) {
  return out << change.step << ": " << strategy_name(change.strategy) << " ("
             << reason_name(change.reason) << ')';
}

struct Course {
  std::vector<Change> changes;
  double seconds = 0;
  int emitted = 0;
  double seconds_a_token() const { return seconds / emitted; }
};

Course run(Mode mode, const StrategyOptions& options, const Device& device, int steps) {
  StrategySwitch strategies;
  strategies.start(mode, options);
  Course run;
  Strategy latest = Strategy::kAsAsked;
  for (int step = 0; step < steps; ++step) {
    const StrategyChoice choice = strategies.choice();
    if (choice.strategy != latest) run.changes.push_back({step, choice.strategy, choice.reason});
    latest = choice.strategy;
    const Pace pace = device(choice.strategy);
    strategies.observe(pace.drafted, pace.emitted, pace.seconds);
    run.seconds += pace.seconds;
    run.emitted += pace.emitted;
  }
  return run;
}

constexpr int kWindow = StrategySwitch::kWindow;
constexpr StrategyOptions kShort = {.least_accepted_length = 1.5};

// Drafts that are never right cost a third of a step.
Pace wrong_guesses(Strategy strategy) {
  return strategy == Strategy::kPlain ? Pace{0, 1, 0.010} : Pace{4, 1, 0.015};
}

TEST(StrategySwitch, WhereGuessesFailPlainDecodingIsTriedAndKeptAndComparedAgain) {
  const Course short_answer = run(Mode::kDynamic, kShort, wrong_guesses, 3 * kWindow + 256 + 1);
  EXPECT_EQ(short_answer.changes,
            (std::vector<Change>{{kWindow, Strategy::kChain, Reason::kAcceptedLength},
                                 {2 * kWindow, Strategy::kPlain, Reason::kAcceptedLength},
                                 {3 * kWindow + 256, Strategy::kAsAsked, Reason::kComparedAgain}}));
  const Course chain = run(Mode::kChain, kShort, wrong_guesses, 3 * kWindow);
  EXPECT_EQ(chain.changes,
            (std::vector<Change>{{kWindow, Strategy::kPlain, Reason::kAcceptedLength}}))
      << "a chain has nothing shorter to try but none";
}

TEST(StrategySwitch, LongStepsAndTreesThatAreEmptyAreLeftAlone) {
  const auto good = [](Strategy) { return Pace{4, 2, 0.012}; };
  EXPECT_TRUE(run(Mode::kDynamic, kShort, good, 1000).changes.empty());
  const auto empty = [](Strategy) { return Pace{0, 1, 0.010}; };
  EXPECT_TRUE(run(Mode::kDynamic, kShort, empty, 1000).changes.empty());
  EXPECT_TRUE(run(Mode::kDynamic, {}, wrong_guesses, 1000).changes.empty()) << "not asked for";
}

TEST(StrategySwitch, WhatIsNoFasterIsGivenUpAndTriedMoreAndMoreRarely) {
  // Short steps that pay all the same: rows cost nothing here.
  const auto cheap = [](Strategy strategy) {
    return strategy == Strategy::kPlain
               ? Pace{0, 1, 0.010}
               : Pace{4, 1, strategy == Strategy::kChain ? 0.0096 : 0.0095};
  };
  const Course found = run(Mode::kDynamic, kShort, cheap, 8000);
  std::vector<int> tried;
  for (const Change& change : found.changes) {
    if (change.strategy == Strategy::kChain) tried.push_back(change.step);
    if (change.strategy == Strategy::kAsAsked) {
      EXPECT_EQ(change.reason, Reason::kNotFaster);
    }
  }
  ASSERT_GE(tried.size(), 4u);
  for (size_t i = 2; i < tried.size(); ++i) {
    EXPECT_GT(tried[i] - tried[i - 1], 1.8 * (tried[i - 1] - tried[i - 2]));
  }
  EXPECT_LT(found.seconds_a_token(), 1.002 * 0.0095) << "finding out costs next to nothing";
}

TEST(StrategySwitch, AHeldStrategyThatBecomesSlowerIsLeftAtOnce) {
  int step = 0;
  const auto changing = [&step](Strategy strategy) {
    const bool later = step++ > 5 * kWindow;
    return strategy == Strategy::kPlain ? Pace{0, 1, later ? 0.020 : 0.010} : Pace{4, 1, 0.015};
  };
  const Course found = run(Mode::kDynamic, kShort, changing, 8 * kWindow);
  ASSERT_EQ(found.changes.size(), 3u);
  EXPECT_EQ(found.changes.back().strategy, Strategy::kAsAsked);
  EXPECT_EQ(found.changes.back().reason, Reason::kNotFaster);
  EXPECT_LE(found.changes.back().step, 7 * kWindow);
}

TEST(StrategySwitch, ALatencyTargetTriesAGreedyTreeInPlaceOfFixedOnes) {
  const auto fixed_is_slow = [](Strategy strategy) {
    return strategy == Strategy::kGreedyTree ? Pace{6, 3, 0.015} : Pace{15, 3, 0.030};
  };
  const StrategyOptions target = {.target_milliseconds = 8};
  const std::vector<Change> switched = {{kWindow, Strategy::kGreedyTree, Reason::kLatency}};
  EXPECT_EQ(run(Mode::kFixed, target, fixed_is_slow, 200).changes, switched);
  EXPECT_EQ(run(Mode::kChain, target, fixed_is_slow, 200).changes, switched);
  EXPECT_TRUE(run(Mode::kDynamic, target, fixed_is_slow, 200).changes.empty())
      << "its trees are greedy already";
  EXPECT_TRUE(run(Mode::kFixed, {.target_milliseconds = 11}, fixed_is_slow, 200).changes.empty())
      << "the target is met";
}

TEST(StrategySwitch, StepsThatWentOtherwiseSayNothing) {
  StrategySwitch strategies;
  strategies.start(Mode::kDynamic, kShort);
  for (int step = 0; step < 1000; ++step) {
    strategies.observe(4, 1, 0.015);
    if (step % (kWindow / 2) == 0) strategies.interrupted();
    ASSERT_EQ(strategies.choice().strategy, Strategy::kAsAsked);
  }
}

// Whatever each strategy brings on a device, answering with switches takes hardly longer than with
// what was asked for.
TEST(StrategySwitch, SwitchingIsNeverSlowerThanStayingButForTheTrials) {
  for (uint32_t device = 0; device < 300; ++device) {
    std::array<Pace, kStrategies> paces;
    for (size_t i = 0; i < paces.size(); ++i) {
      const uint32_t noise = (device * 2654435761u + static_cast<uint32_t>(i) * 40503u) >> 8;
      paces[i] = {static_cast<int>(noise % 5), 1 + static_cast<int>(noise / 5 % 2),
                  0.005 + 0.0001 * (noise / 11 % 100)};
    }
    for (const Mode mode : {Mode::kChain, Mode::kFixed, Mode::kDynamic}) {
      const auto pace = [&](Strategy strategy) { return paces[static_cast<size_t>(strategy)]; };
      const Course switched =
          run(mode, {.least_accepted_length = 1.5, .target_milliseconds = 6}, pace, 20000);
      const Pace asked = pace(Strategy::kAsAsked);
      EXPECT_LT(switched.seconds_a_token(), 1.02 * asked.seconds / asked.emitted) << device;
    }
  }
}

}  // namespace
}  // namespace sapwood
