#include "tree/budget.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <random>
#include <vector>

namespace sapwood {
namespace {

CostCurve curve_of(const std::vector<int>& rows, const std::vector<double>& milliseconds) {
  return CostCurve::measured(rows, milliseconds);
}

int grow(Budget& budget, const std::vector<double>& acceptances) {
  for (const double a : acceptances) {
    if (!budget.wants(a)) break;
    budget.add(a);
  }
  return budget.best_nodes();
}

TEST(CostCurve, AMeasuredCurvePassesThroughItsMeasurements) {
  const CostCurve curve = curve_of({1, 4, 8, 16}, {3, 3.3, 5, 9});
  EXPECT_DOUBLE_EQ(curve.milliseconds(1), 3);
  EXPECT_DOUBLE_EQ(curve.milliseconds(4), 3.3);
  EXPECT_DOUBLE_EQ(curve.milliseconds(8), 5);
  EXPECT_DOUBLE_EQ(curve.milliseconds(12), 7);
  EXPECT_DOUBLE_EQ(curve.milliseconds(16), 9);
  EXPECT_GT(curve.milliseconds(64), curve.milliseconds(16));
}

TEST(CostCurve, TheFirstObservationGivesAnAssumedCurveItsUnit) {
  CostCurve curve = CostCurve::assumed();
  const double shape = curve.milliseconds(8) / curve.milliseconds(1);
  curve.observe(1, 2.5);
  EXPECT_NEAR(curve.milliseconds(1), 2.5, 1e-9);
  EXPECT_NEAR(curve.milliseconds(8), 2.5 * shape, 1e-9);
}

TEST(CostCurve, ObservationsConvergeToWhatStepsReallyTake) {
  std::mt19937 random(5);
  std::uniform_real_distribution<double> noise(0.9, 1.1);
  const auto truth = [](int rows) { return 4.0 + 0.9 * rows; };
  CostCurve curve = CostCurve::assumed();
  for (int step = 0; step < 2000; ++step) {
    const int rows = 1 + static_cast<int>(random() % (1u << (random() % 6)));
    curve.observe(rows, truth(rows) * noise(random));
  }
  for (const int rows : {1, 2, 4, 6, 8, 16, 24, 32}) {
    EXPECT_NEAR(curve.milliseconds(rows), truth(rows), truth(rows) * 0.12) << rows;
  }
}

TEST(CostCurve, MoreRowsNeverCostLessHoweverNoisyTheSteps) {
  std::mt19937 random(6);
  std::uniform_real_distribution<double> noise(-1.5, 1.5);
  CostCurve curve = CostCurve::assumed();
  for (int step = 0; step < 500; ++step) {
    curve.observe(1 + static_cast<int>(random() % 40), 5.0 * std::exp(noise(random)));
    for (int rows = 1; rows < 256; ++rows) {
      ASSERT_LE(curve.milliseconds(rows), curve.milliseconds(rows + 1) * (1 + 1e-12));
    }
  }
}

TEST(CostCurve, ASizeThatWasSlowOnceIsForgivenInTime) {
  CostCurve curve = curve_of({1, 2, 4, 8, 16, 32}, {3, 3.2, 3.5, 4, 6, 12});
  for (int i = 0; i < 10; ++i) curve.observe(8, 40);
  EXPECT_GT(curve.milliseconds(8), 10);
  for (int i = 0; i < 400; ++i) curve.observe(1, 3);
  EXPECT_NEAR(curve.milliseconds(8), 4, 0.5);
}

TEST(CostCurve, OneInterruptedStepBendsItByAFactorAtMost) {
  CostCurve curve = curve_of({1, 2, 4, 8, 16, 32}, {3, 3, 3, 4, 6, 12});
  for (int i = 0; i < 30; ++i) curve.observe(8, 4);
  curve.observe(8, 4000);
  EXPECT_LT(curve.milliseconds(8), 4 * 1.2);
  curve.observe(8, 0);
  curve.observe(8, -1);
  EXPECT_GT(curve.milliseconds(8), 4 * 0.8);
}

TEST(Budget, WhereRowsAreDearTheEmptyTreeIsChosen) {
  const CostCurve curve = curve_of({1, 2, 4, 8}, {1, 2, 4, 8});
  Budget budget(curve, 0, 7);
  EXPECT_EQ(grow(budget, {0.9, 0.8, 0.7}), 0);
}

TEST(Budget, WhereRowsAreFreeEverythingIsTaken) {
  const CostCurve curve = curve_of({1, 8}, {5, 5});
  Budget budget(curve, 0, 7);
  EXPECT_EQ(grow(budget, {0.9, 0.5, 0.1, 0.01, 0.001, 0.001, 0.001}), 7);
}

TEST(Budget, ABucketWorthFillingIsFoundBehindACostlyNode) {
  // The second row costs a step up, the next six nothing: one node alone does not pay, seven do.
  const CostCurve curve = curve_of({1, 2, 4, 8}, {1.0, 1.9, 1.9, 1.9});
  Budget budget(curve, 0, 7);
  EXPECT_EQ(grow(budget, {0.8, 0.6, 0.5, 0.4, 0.3, 0.2, 0.1}), 7);
  Budget one(curve, 0, 1);
  EXPECT_EQ(grow(one, {0.8}), 0);
}

TEST(Budget, AStepsOwnOverheadMakesLargerTreesPay) {
  const CostCurve curve = curve_of({1, 2, 4, 8}, {1, 1.8, 3.4, 6.6});
  Budget without(curve, 0, 7);
  Budget with(curve, 5, 7);
  const std::vector<double> acceptances = {0.5, 0.4, 0.3, 0.2, 0.1, 0.05, 0.02};
  EXPECT_EQ(grow(without, acceptances), 0);
  EXPECT_GT(grow(with, acceptances), 2);
}

// Falling acceptances and any rising curve: the choice is the best of all prefixes.
TEST(Budget, TheChoiceIsTheBestOfAllSizes) {
  std::mt19937 random(11);
  std::uniform_real_distribution<double> uniform(0, 1);
  for (int round = 0; round < 500; ++round) {
    std::vector<double> milliseconds = {1.0};
    for (int knot = 1; knot < 6; ++knot) {
      milliseconds.push_back(milliseconds.back() * (1 + uniform(random) * uniform(random) * 1.5));
    }
    const CostCurve curve = curve_of({1, 2, 4, 8, 16, 32}, milliseconds);
    std::vector<double> acceptances(31);
    for (double& a : acceptances) a = uniform(random) * uniform(random);
    std::sort(acceptances.rbegin(), acceptances.rend());
    const double overhead = uniform(random);
    Budget budget(curve, overhead, 31);
    const int chosen = grow(budget, acceptances);
    double expected = 1;
    double best = 1 / (curve.milliseconds(1) + overhead);
    int best_nodes = 0;
    for (int n = 1; n <= 31; ++n) {
      expected += acceptances[n - 1];
      const double ratio = expected / (curve.milliseconds(n + 1) + overhead);
      if (ratio > best) {
        best = ratio;
        best_nodes = n;
      }
    }
    ASSERT_EQ(chosen, best_nodes);
    ASSERT_NEAR(budget.best_ratio(), best, 1e-12);
  }
}

}  // namespace
}  // namespace sapwood
