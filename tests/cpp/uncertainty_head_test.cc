// The trained half of the controller; tests/python/test_uncertainty_head.py compares it with numpy
// and torch.
#include "tree/uncertainty_head.h"

#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "measure/allocation_counter.h"
#include "tree/pruning.h"

namespace sapwood {
namespace {

TEST(UncertaintyHead, IsATwoLayerNetworkWithASigmoid) {
  const std::vector<float> w1 = {1.f, -2.f, 0.5f, 0.f, 1.f, -1.f};  // [2][3]
  const Result<UncertaintyHead> head = UncertaintyHead::create(
      w1, std::vector<float>{0.5f, -0.25f}, std::vector<float>{2.f, -1.f}, 0.125f);
  ASSERT_TRUE(head.ok());
  EXPECT_EQ(head->hidden_size(), 3);
  const std::vector<float> hidden = {1.f, 0.25f, 2.f};
  // First unit: 1 - 0.5 + 1 + 0.5 = 2; second: 0.25 - 2 - 0.25 < 0.
  EXPECT_NEAR(head->uncertainty(hidden), 1.0 / (1.0 + std::exp(-(2.0 * 2.0 + 0.125))), 1e-6);
}

TEST(UncertaintyHead, WeightsThatDoNotFitAreRefused) {
  const std::vector<float> one = {1.f};
  EXPECT_FALSE(UncertaintyHead::create(std::vector<float>{1.f, 2.f, 3.f},
                                       std::vector<float>{1.f, 2.f}, std::vector<float>{1.f, 2.f},
                                       0.f)
                   .ok());
  EXPECT_FALSE(UncertaintyHead::create(one, {}, {}, 0.f).ok());
  EXPECT_FALSE(UncertaintyHead::create(one, one, std::vector<float>{std::nanf("")}, 0.f).ok());
}

TEST(UncertaintyHead, FollowsTheDefinitionInDoubleAndAllocatesNothing) {
  std::mt19937 random(8);
  std::normal_distribution<float> normal(0, 1);
  for (const int hidden_size : {1, 15, 16, 17, 576, 1500}) {
    const int units = 1 + static_cast<int>(random() % 40);
    std::vector<float> w1(static_cast<size_t>(units * hidden_size));
    std::vector<float> b1(static_cast<size_t>(units));
    std::vector<float> w2(static_cast<size_t>(units));
    std::vector<float> hidden(static_cast<size_t>(hidden_size));
    for (auto* values : {&w1, &b1, &w2, &hidden}) {
      for (float& value : *values) value = normal(random);
    }
    for (float& value : w1) value /= std::sqrt(static_cast<float>(hidden_size));
    double score = 0.25;
    for (int u = 0; u < units; ++u) {
      double sum = b1[static_cast<size_t>(u)];
      for (int i = 0; i < hidden_size; ++i) {
        sum += static_cast<double>(w1[static_cast<size_t>(u * hidden_size + i)]) *
               static_cast<double>(hidden[static_cast<size_t>(i)]);
      }
      score += static_cast<double>(w2[static_cast<size_t>(u)]) * std::max(sum, 0.0);
    }
    const Result<UncertaintyHead> head = UncertaintyHead::create(w1, b1, w2, 0.25f);
    ASSERT_TRUE(head.ok());
    EXPECT_EQ(head->units(), units);
    const uint64_t before = allocations();
    const float found = head->uncertainty(hidden);
    EXPECT_EQ(allocations(), before);
    EXPECT_NEAR(found, 1 / (1 + std::exp(-score)), 2e-6) << hidden_size;
  }
}

TEST(UncertaintyHead, AHiddenStateThatIsNoNumberIsAsUncertainAsCanBe) {
  const std::vector<float> one = {1.f};
  const UncertaintyHead head = UncertaintyHead::create(one, one, one, 0.f).value();
  const std::vector<float> bad = {std::numeric_limits<float>::quiet_NaN()};
  EXPECT_EQ(head.uncertainty(bad), 1.f);
}

TEST(SoftPruning, PrunesByTheHeadsWordWhereThereIsOne) {
  const std::vector<int32_t> tokens = {4, 2, 9, 1};
  const std::vector<float> log_q = {std::log(0.72f), std::log(0.13f), std::log(0.1f),
                                    std::log(0.05f)};
  Candidates candidates{tokens, log_q, 0.9f};
  DraftTree tree;
  std::vector<int> kept(4);
  SoftPruning rule({});
  const auto count = [&] { return rule.select(tree, DraftTree::kRoot, candidates, kept); };
  candidates.uncertainty = 0.f;  // certain: 0.3 may go
  EXPECT_EQ(count(), 1);
  candidates.uncertainty = 1.f;
  EXPECT_EQ(count(), 4);
  rule.set_beta(0.f);  // nothing may go but rho_min
  candidates.uncertainty = 0.f;
  EXPECT_EQ(count(), 4);
}

}  // namespace
}  // namespace sapwood
