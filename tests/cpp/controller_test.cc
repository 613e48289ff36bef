// Candidate selection, the uncertainty rules and soft truncation.
#include "tree/controller.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>
#include <random>

#include "kernels/kernels.h"
#include "measure/allocation_counter.h"
#include "tree/isa/softmax_loops.h"

namespace sapwood {
namespace {

constexpr float kNever = -std::numeric_limits<float>::infinity();

// The same by sorting everything, in double.
struct Sorted {
  std::vector<int32_t> tokens;
  std::vector<double> log_q;
  double entropy = 0;
};

Sorted by_sorting(const std::vector<float>& scores, size_t most) {
  Sorted all;
  all.tokens.resize(scores.size());
  std::iota(all.tokens.begin(), all.tokens.end(), 0);
  std::stable_sort(all.tokens.begin(), all.tokens.end(),
                   [&](int32_t a, int32_t b) { return scores[a] > scores[b]; });
  const double largest = scores[all.tokens[0]];
  double whole = 0;
  for (const float score : scores) whole += std::exp(score - largest);
  for (const int32_t token : all.tokens) {
    const double log_q = scores[token] - largest - std::log(whole);
    if (log_q > -1e30) all.entropy -= std::exp(log_q) * log_q;
    if (all.log_q.size() < most && scores[token] != kNever) all.log_q.push_back(log_q);
  }
  all.tokens.resize(all.log_q.size());
  return all;
}

void expect_same(const std::vector<float>& scores, int most) {
  CandidateSelector selector(static_cast<int>(scores.size()));
  const Result<Candidates> found = selector.select(scores, {}, most);
  ASSERT_TRUE(found.ok()) << found.status().message();
  const Sorted expected = by_sorting(scores, static_cast<size_t>(most));
  ASSERT_EQ(std::vector<int32_t>(found->tokens.begin(), found->tokens.end()), expected.tokens);
  for (size_t i = 0; i < expected.log_q.size(); ++i) {
    ASSERT_NEAR(found->log_q[i], expected.log_q[i], 2e-5);
  }
  ASSERT_NEAR(found->entropy, expected.entropy, 2e-4);
}

TEST(CandidateSelector, FindsWhatSortingFindsInAnyDistribution) {
  std::mt19937 random(6);
  std::normal_distribution<float> normal(0, 3);
  for (const int n : {1, 2, 15, 16, 17, 127, 128, 129, 1000, 49152}) {
    std::vector<float> scores(static_cast<size_t>(n));
    for (float& score : scores) score = normal(random);
    for (const int most : {1, 5, 16, 32}) expect_same(scores, most);
    std::sort(scores.begin(), scores.end());  // the likeliest last: every block looks better
    expect_same(scores, 16);
    std::reverse(scores.begin(), scores.end());
    expect_same(scores, 16);
    for (float& score : scores) score = std::round(score);  // ties: the lower id first
    expect_same(scores, 32);
  }
}

TEST(CandidateSelector, TokensOfProbabilityZeroAreNoCandidates) {
  std::vector<float> scores(300, kNever);
  scores[200] = 1.f;
  scores[7] = 0.f;
  expect_same(scores, 16);
  std::vector<float> flat(5000, 2.5f);
  expect_same(flat, 16);
}

TEST(CandidateSelector, SparseScoresGiveTheTokensTheyBelongTo) {
  CandidateSelector selector(100);
  const std::vector<float> scores = {-1.f, -0.5f, -3.f};
  const std::vector<int32_t> ids = {10, 40, 90};
  const Result<Candidates> found = selector.select(scores, ids, 2);
  ASSERT_TRUE(found.ok());
  EXPECT_EQ(std::vector<int32_t>(found->tokens.begin(), found->tokens.end()),
            (std::vector<int32_t>{40, 10}));
}

TEST(CandidateSelector, ScoresThatAreNoDistributionAreRefused) {
  CandidateSelector selector(200);
  std::vector<float> scores(200, 0.f);
  scores[150] = std::numeric_limits<float>::quiet_NaN();
  EXPECT_FALSE(selector.select(scores, {}, 4).ok());
  scores[150] = std::numeric_limits<float>::infinity();
  EXPECT_FALSE(selector.select(scores, {}, 4).ok());
  EXPECT_FALSE(selector.select(std::vector<float>(200, kNever), {}, 4).ok());
  EXPECT_FALSE(selector.select(std::vector<float>(), {}, 4).ok());
  EXPECT_FALSE(selector.select(std::vector<float>(1000, 0.f), {}, 4).ok());
}

TEST(CandidateSelector, SelectingAndTruncatingAllocateNothing) {
  std::vector<float> scores(49152);
  std::mt19937 random(1);
  std::normal_distribution<float> normal(0, 4);
  for (float& score : scores) score = normal(random);
  CandidateSelector selector(49152);
  const ControllerOptions options;
  const uint64_t before = allocations();
  for (int i = 0; i < 3; ++i) {
    const Result<Candidates> found = selector.select(scores, {}, options.max_tree_width);
    const float a = entropy_uncertainty(found->entropy, options);
    soft_truncate(found.value(), prune_ratio(a, options), options.max_tree_width);
  }
  EXPECT_EQ(allocations(), before);
}

TEST(SoftmaxLoops, EveryInstructionSetHasTheSameBits) {
#if defined(__x86_64__)
  std::mt19937 random(2);
  std::normal_distribution<float> normal(0, 5);
  for (const int n : {1, 16, 100, 1024, 5003}) {
    std::vector<float> scores(static_cast<size_t>(n));
    for (float& score : scores) score = normal(random);
    scores[0] = kNever;
    std::vector<float> maxima(static_cast<size_t>(n) / kSoftmaxBlock + 1);
    std::vector<float> other(maxima.size());
    const float shift = std::max(*std::max_element(scores.begin(), scores.end()), 0.f);
    const SoftmaxSums expected = kScalarSoftmaxLoops.sums(scores.data(), n, shift);
    ASSERT_TRUE(kScalarSoftmaxLoops.block_maxima(scores.data(), n, maxima.data()));
    for (const auto& [feature, loops] :
         {std::pair{static_cast<bool>(__builtin_cpu_supports("avx2")), &kAvx2SoftmaxLoops},
          std::pair{static_cast<bool>(__builtin_cpu_supports("avx512vnni")),
                    &kAvx512SoftmaxLoops}}) {
      if (!feature) continue;
      const SoftmaxSums sums = loops->sums(scores.data(), n, shift);
      EXPECT_EQ(sums.mass, expected.mass);
      EXPECT_EQ(sums.moment, expected.moment);
      EXPECT_EQ(loops->dot(scores.data() + 1, scores.data(), n - 1),
                kScalarSoftmaxLoops.dot(scores.data() + 1, scores.data(), n - 1));
      ASSERT_TRUE(loops->block_maxima(scores.data(), n, other.data()));
      EXPECT_EQ(maxima, other);
    }
  }
#else
  GTEST_SKIP() << "one set of loops on this architecture";
#endif
}

TEST(Controller, TheEntropyRuleIsLinearBetweenItsEnds) {
  const ControllerOptions options;
  EXPECT_EQ(entropy_uncertainty(0.f, options), 0.f);
  EXPECT_EQ(entropy_uncertainty(0.8f, options), 0.f);
  EXPECT_NEAR(entropy_uncertainty(1.65f, options), 0.5f, 1e-6f);
  EXPECT_EQ(entropy_uncertainty(9.f, options), 1.f);
}

TEST(Controller, ACertainDraftIsPrunedMostAndAnUncertainOneLeast) {
  const ControllerOptions options;
  EXPECT_NEAR(prune_ratio(0.f, options), 0.3f, 1e-7f);
  EXPECT_NEAR(prune_ratio(0.5f, options), 0.15f, 1e-7f);
  EXPECT_EQ(prune_ratio(1.f, options), options.rho_min);
  EXPECT_EQ(prune_ratio(0.f, {.beta_base = 0.9f}), options.rho_max);
}

TEST(Controller, SoftTruncationKeepsTheShortestPrefixOfTheWantedMass) {
  const std::vector<float> scores = {std::log(0.1f), std::log(0.5f), std::log(0.15f),
                                     std::log(0.25f)};
  CandidateSelector selector(4);
  const Result<Candidates> found = selector.select(scores, {}, 16);
  ASSERT_TRUE(found.ok());
  const auto kept = [&](float ratio, int width) {
    return soft_truncate(found.value(), ratio, width).kept;
  };
  EXPECT_EQ(kept(0.55f, 16), 1);
  EXPECT_EQ(kept(0.3f, 16), 2);
  EXPECT_EQ(kept(0.2f, 16), 3);
  EXPECT_EQ(kept(0.02f, 16), 4);
  EXPECT_EQ(kept(0.02f, 2), 2);
  EXPECT_EQ(kept(0.9f, 16), 1);  // at least one
  const SoftTruncation truncation = soft_truncate(found.value(), 0.3f, 16);
  EXPECT_NEAR(truncation.log_mass, std::log(0.75f), 1e-5f);
  EXPECT_NEAR(truncation.log_weight, -std::log(0.75f), 1e-5f);
  EXPECT_NEAR(soft_truncate(found.value(), 0.f, 16).log_weight, 0.f, 1e-5f);
}

TEST(Controller, AHeadsWordCountsForMoreThanTheEntropy) {
  const ControllerOptions options;
  Candidates candidates;
  candidates.entropy = 0.1f;
  EXPECT_EQ(uncertainty_of(candidates, options), 0.f);
  candidates.uncertainty = 0.75f;
  EXPECT_EQ(uncertainty_of(candidates, options), 0.75f);
  candidates.uncertainty = 7.f;
  EXPECT_EQ(uncertainty_of(candidates, options), 1.f);
}

TEST(Controller, DraftsAreLongWhereTheEntropyIsLow) {
  EXPECT_EQ(draft_length(0.f), 8);
  EXPECT_EQ(draft_length(0.499f), 8);
  EXPECT_EQ(draft_length(0.5f), 4);
  EXPECT_EQ(draft_length(0.999f), 4);
  EXPECT_EQ(draft_length(1.f), 1);
  EXPECT_EQ(draft_length(9.f), 1);
}

TEST(Controller, OptionsOutOfRangeAreNamed) {
  EXPECT_TRUE(ControllerOptions{}.check().ok());
  EXPECT_NE(ControllerOptions{.beta_base = 2.f}.check().message().find("beta_base"),
            std::string::npos);
  EXPECT_NE(ControllerOptions{.max_tree_width = 33}.check().message().find("max_tree_width"),
            std::string::npos);
  EXPECT_FALSE(ControllerOptions{.entropy_low = 3.f}.check().ok());
  EXPECT_FALSE((ControllerOptions{.rho_min = 0.7f}.check().ok()));
  EXPECT_FALSE((ControllerOptions{.rho_max = std::nanf("")}.check().ok()));
}

}  // namespace
}  // namespace sapwood
