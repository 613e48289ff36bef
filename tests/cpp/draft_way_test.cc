// Which way of drafting is chosen, by made costs.
#include "engine/draft_way.h"

#include <gtest/gtest.h>

#include <array>
#include <random>

namespace sapwood {
namespace {

// Seconds of a step, by way.
using Costs = std::array<double, kDraftWays>;

// Runs so many steps of two tokens; how many went each way after a trial.
std::array<int, kDraftWays> kept_steps(DraftWayChoice& choice, const Costs& costs, int steps) {
  std::array<int, kDraftWays> kept{};
  for (int step = 0; step < steps; ++step) {
    const size_t way = static_cast<size_t>(choice.way());
    if (!choice.in_trial()) ++kept[way];
    choice.observe(2, costs[way]);
  }
  return kept;
}

TEST(DraftWayChoice, KeepsTheCheapestOfAllWays) {
  const std::array<Costs, kDraftWays> cheapest = {Costs{1.0, 1.1, 1.2}, Costs{1.1, 1.0, 1.2},
                                                  Costs{1.2, 1.1, 1.0}};
  for (size_t best = 0; best < cheapest.size(); ++best) {
    DraftWayChoice choice;
    const auto kept = kept_steps(choice, cheapest[best], 2000);
    for (size_t way = 0; way < kept.size(); ++way) EXPECT_EQ(kept[way] > 0, way == best) << best;
  }
}

TEST(DraftWayChoice, TriesEveryWayForAsLong) {
  DraftWayChoice choice;
  std::array<int, kDraftWays> tried{};
  for (int step = 0; step < DraftWayChoice::kTrial; ++step) {
    EXPECT_TRUE(choice.in_trial());
    ++tried[static_cast<size_t>(choice.way())];
    choice.observe(1, 1);
  }
  EXPECT_FALSE(choice.in_trial());
  for (const int steps : tried) EXPECT_EQ(steps, DraftWayChoice::kBlock * DraftWayChoice::kBlocks);
}

// What a step has from the one before it, when that looked ahead, is not the way's own.
TEST(DraftWayChoice, DoesNotCountTheFirstStepOfABlock) {
  DraftWayChoice choice;
  for (int step = 0; step < DraftWayChoice::kTrial; ++step) {
    const bool first = step % DraftWayChoice::kBlock == 0;
    choice.observe(2, first && choice.way() != DraftWay::kBeside ? 100 : 1);
  }
  EXPECT_EQ(choice.way(), DraftWay::kInTurns);
}

TEST(DraftWayChoice, DecidesAnewWhenCostsChange) {
  DraftWayChoice choice;
  EXPECT_GT(kept_steps(choice, {1.0, 1.2, 0.9}, 5000)[static_cast<size_t>(DraftWay::kAhead)], 0);
  EXPECT_EQ(choice.way(), DraftWay::kAhead);
  // A core that is taken away: within the steps that are watched, and a trial.
  kept_steps(choice, {1.0, 1.6, 2.0}, 2 * DraftWayChoice::kWatched + 2 * DraftWayChoice::kTrial);
  EXPECT_EQ(choice.way(), DraftWay::kInTurns);
  EXPECT_EQ(kept_steps(choice, {1.0, 1.6, 2.0}, 1000)[static_cast<size_t>(DraftWay::kAhead)], 0);
  // One that comes back is found by a later trial; how much later, its rarity says.
  kept_steps(choice, {1.0, 0.9, 0.5}, 3 * DraftWayChoice::kLongestKept);
  EXPECT_EQ(choice.way(), DraftWay::kAhead);
}

// Steps of any length and noise of a quarter: no way that is slower is kept for long, and none that
// is as fast as drafting in turns.
TEST(DraftWayChoice, NoiseDoesNotKeepASlowerWay) {
  std::mt19937 random(5);
  std::uniform_real_distribution<double> noise(0.75, 1.25);
  std::uniform_int_distribution<int> tokens(1, 4);
  int in_turns = 0;
  int all = 0;
  double spent = 0;
  double least = 0;
  for (int round = 0; round < 50; ++round) {
    const Costs costs = {1.0, 1.0, 1.1};
    DraftWayChoice choice;
    for (int step = 0; step < 5000; ++step) {
      const DraftWay way = choice.way();
      const double base = noise(random);
      if (!choice.in_trial()) {
        ++all;
        in_turns += way == DraftWay::kInTurns ? 1 : 0;
        spent += base * costs[static_cast<size_t>(way)];
        least += base;
      }
      choice.observe(tokens(random), base * costs[static_cast<size_t>(way)]);
    }
  }
  EXPECT_GT(in_turns, 0.6 * all);
  EXPECT_LT(spent, 1.02 * least);
}

// Trials are a small part of what goes on for long.
TEST(DraftWayChoice, TrialsBecomeRareWhereTheyChangeNothing) {
  DraftWayChoice choice;
  constexpr int kSteps = 20000;
  const auto kept = kept_steps(choice, {1.0, 1.1, 1.2}, kSteps);
  EXPECT_GT(kept[static_cast<size_t>(DraftWay::kInTurns)], 0.95 * kSteps);
}

TEST(DoubleBuffer, NamesGoBothWays) {
  EXPECT_EQ(parse_double_buffer("on"), DoubleBuffer::kOn);
  EXPECT_EQ(parse_double_buffer("off"), DoubleBuffer::kOff);
  EXPECT_EQ(parse_double_buffer("measured"), DoubleBuffer::kMeasured);
  EXPECT_FALSE(parse_double_buffer("sometimes").has_value());
  EXPECT_EQ(draft_way_name(DraftWay::kInTurns), "in turns");
  EXPECT_EQ(draft_way_name(DraftWay::kBeside), "beside");
  EXPECT_EQ(draft_way_name(DraftWay::kAhead), "ahead");
}

}  // namespace
}  // namespace sapwood
