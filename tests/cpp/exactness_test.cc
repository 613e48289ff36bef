// The exactness report holds what it claims; comparisons of verifiers by enumeration.
#include "verify/exactness.h"

#include <gtest/gtest.h>

#include <set>

#include "verify/optimum.h"

namespace sapwood {
namespace {

// Made once: it takes seconds.
const Result<std::vector<Exactness>>& report_of_three() {
  static const Result<std::vector<Exactness>> report = exactness_report({.models = 3});
  return report;
}

TEST(Exactness, EveryLosslessCombinationDeviatesByLessThanTheToleranceAndNoneBeatsTheOptimum) {
  const Result<std::vector<Exactness>>& report = report_of_three();
  ASSERT_TRUE(report.ok()) << report.status().message();
  std::set<std::string> names;
  int lossless = 0;
  for (const Exactness& row : report.value()) {
    EXPECT_TRUE(names.insert(row.name).second) << row.name;
    if (!row.lossless) continue;
    ++lossless;
    EXPECT_LE(row.deviation, kExactTolerance) << row.name;
    EXPECT_LE(row.expected_accepted, row.optimum + 1e-9) << row.name;
  }
  EXPECT_EQ(lossless, 8 * 8 * 3 * 4);
}

TEST(Exactness, TheAblationsAreFarFromThePlainLaw) {
  const Result<std::vector<Exactness>>& report = report_of_three();
  ASSERT_TRUE(report.ok());
  int published = 0;
  int dropped = 0;
  for (const Exactness& row : report.value()) {
    if (row.lossless) continue;
    EXPECT_TRUE(row.name.starts_with("ablation: ")) << row.name;
    EXPECT_GT(row.deviation, 0.03) << row.name;
    published += row.name.find("scale-and-mask") != std::string::npos ? 1 : 0;
    dropped += row.name.find("dropped") != std::string::npos ? 1 : 0;
  }
  EXPECT_EQ(published, 2);
  EXPECT_EQ(dropped, 2);
}

TEST(Exactness, DeeperTreesOverMoreTokensStayExact) {
  for (const auto& [vocabulary, depth, nodes] :
       {std::array{2, 3, 6}, std::array{3, 3, 5}, std::array{5, 1, 4}}) {
    const Result<std::vector<Exactness>> report =
        exactness_report({.vocabulary = vocabulary, .depth = depth, .nodes = nodes, .models = 1});
    ASSERT_TRUE(report.ok());
    for (const Exactness& row : report.value()) {
      if (row.lossless) {
        EXPECT_LE(row.deviation, kExactTolerance) << row.name;
      }
    }
  }
}

TEST(Exactness, BlockIsNeverBelowRejectionOnAThousandChainsAndReachesTheOptimum) {
  const Result<ChainComparison> chains = compare_on_chains(1000);
  ASSERT_TRUE(chains.ok()) << chains.status().message();
  EXPECT_GE(chains->least_gain, -1e-12);
  EXPECT_GT(chains->block, chains->rejection);
  EXPECT_NEAR(chains->block, chains->optimum, 1e-9);
}

TEST(Exactness, OnTreesTheDefaultVerifierMeasuresBest) {
  const Result<TreeComparison> trees = compare_on_trees(200);
  ASSERT_TRUE(trees.ok()) << trees.status().message();
  EXPECT_GT(trees->rejection, trees->naive);
  EXPECT_GT(trees->traversal, trees->rejection);
  EXPECT_LE(trees->traversal, trees->sampled_optimum + 1e-9);
  EXPECT_EQ(kSampledTreeVerifier, Verifier::kTraversal);
}

TEST(Exactness, OptionsOutOfRangeAreRefused) {
  EXPECT_FALSE(exactness_report({.vocabulary = 1}).ok());
  EXPECT_FALSE(exactness_report({.depth = 4}).ok());
  EXPECT_FALSE(exactness_report({.nodes = 0}).ok());
  EXPECT_FALSE(exactness_report({.models = 0}).ok());
}

TEST(Optimum, ALinearProgramIsSolvedToItsVertex) {
  // maximise 3x + 2y: x + y <= 4, x + 3y <= 6, x <= 3.
  EXPECT_NEAR(maximise({{1, 1}, {1, 3}, {1, 0}}, {4, 6, 3}, {3, 2}), 11.0, 1e-12);
  // Degenerate: three constraints meet at the vertex.
  EXPECT_NEAR(maximise({{1, 0}, {0, 1}, {1, 1}, {2, 1}}, {1, 1, 2, 3}, {1, 1}), 2.0, 1e-12);
}

TEST(Optimum, TwoDraftsOfOneTokenGiveTheMaximalCoupling) {
  const std::map<PathSet, double> drafts = {{{{0}}, 0.7}, {{{1}}, 0.3}};
  const auto p = [](const Path&, int32_t token) { return token == 0 ? 0.4 : 0.6; };
  EXPECT_NEAR(optimal_accepted(drafts, p), 0.4 + 0.3, 1e-12);
}

TEST(Optimum, AFixedTreeIsWorthTheProbabilityOfItsPaths) {
  const std::map<PathSet, double> drafts = {{{{0}, {1}, {0, 1}}, 1.0}};
  const auto p = [](const Path& path, int32_t token) {
    return path.empty() ? (token == 0 ? 0.5 : 0.2) : 0.25;
  };
  EXPECT_NEAR(optimal_accepted(drafts, p), 0.5 + 0.2 + 0.5 * 0.25, 1e-12);
}

}  // namespace
}  // namespace sapwood
