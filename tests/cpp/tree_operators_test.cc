// The functions behind DynamicTreePrune and BlockSparseVerify; tests/python/test_tree_operators.py
// compares them with torch and numpy.
#include <gtest/gtest.h>

#include <cmath>
#include <random>
#include <vector>

#include "measure/allocation_counter.h"
#include "tree/dynamic_tree_prune.h"
#include "verify/block_sparse_verify.h"

namespace sapwood {
namespace {

constexpr int kVocabulary = 300;
constexpr int kWidth = 4;

// A chain or bush with its own memory.
struct Input {
  int rows;
  std::vector<float> target;
  std::vector<float> draft;
  std::vector<uint8_t> mask;
  std::vector<float> weights;
  BlockSparseTree view() const {
    BlockSparseTree tree;
    tree.rows = rows;
    tree.vocabulary = kVocabulary;
    tree.width = kWidth;
    tree.target_logits = target;
    tree.draft_logits = draft;
    tree.tree_mask = mask;
    tree.importance_weights = weights;
    return tree;
  }
};

// Three children of the root, the first with two of its own, pruned by the controller's operator.
Input bush(uint32_t seed, float difference) {
  std::mt19937 random(seed);
  std::normal_distribution<float> normal(0, 1);
  Input input;
  input.rows = 6;
  for (int i = 0; i < input.rows * kVocabulary; ++i) {
    input.draft.push_back(normal(random));
    input.target.push_back(input.draft.back() + difference * normal(random));
  }
  std::vector<int32_t> kept(input.rows * kWidth);
  input.mask.resize(input.rows * kWidth);
  input.weights.resize(input.rows * kWidth);
  CandidateSelector selector(kVocabulary);
  ControllerOptions options;
  options.max_tree_width = kWidth;
  EXPECT_TRUE(dynamic_tree_prune(input.draft, input.rows, kVocabulary, {}, options, selector,
                                 kept.data(), input.weights.data(), input.mask.data())
                  .ok());
  std::fill(input.mask.begin(), input.mask.end(), uint8_t{0});
  input.mask[0] = 2;  // drawn second, and so node 1
  input.mask[1] = 1;
  input.mask[3] = 3;
  input.mask[kWidth + 0] = 1;  // below node 0
  input.mask[kWidth + 2] = 2;
  return input;
}

TEST(DynamicTreePrune, KeepsWhatTheControllerKeepsAndPadsTheRest) {
  const std::vector<float> logits = {std::log(0.75f), std::log(0.2f), std::log(0.05f),  // certain
                                     std::log(0.4f),  std::log(0.3f), std::log(0.3f)};
  ControllerOptions options;
  options.max_tree_width = 4;
  options.entropy_low = 0.85f;
  options.entropy_high = 1.0f;
  CandidateSelector selector(3);
  std::vector<int32_t> kept(8, 77);
  std::vector<float> weights(8, 77);
  std::vector<uint8_t> mask(8, 77);
  ASSERT_TRUE(dynamic_tree_prune(logits, 2, 3, {}, options, selector, kept.data(), weights.data(),
                                 mask.data())
                  .ok());
  EXPECT_EQ(kept, (std::vector<int32_t>{0, -1, -1, -1, 0, 1, 2, -1}));
  EXPECT_EQ(mask, (std::vector<uint8_t>{1, 0, 0, 0, 1, 1, 1, 0}));
  EXPECT_NEAR(weights[0], 1 / 0.75f, 1e-4f);
  EXPECT_NEAR(weights[4], 1.f, 1e-4f);
  EXPECT_EQ(weights[7], 0.f);
}

TEST(DynamicTreePrune, ATrainedHeadsWordReplacesTheEntropy) {
  const std::vector<float> logits = {std::log(0.75f), std::log(0.2f), std::log(0.05f),
                                     std::log(0.75f), std::log(0.2f), std::log(0.05f)};
  const std::vector<float> uncertainty = {0.f, 1.f};
  ControllerOptions options;
  options.max_tree_width = 3;
  CandidateSelector selector(3);
  std::vector<int32_t> kept(6);
  std::vector<float> weights(6);
  std::vector<uint8_t> mask(6);
  ASSERT_TRUE(dynamic_tree_prune(logits, 2, 3, uncertainty, options, selector, kept.data(),
                                 weights.data(), mask.data())
                  .ok());
  EXPECT_EQ(mask, (std::vector<uint8_t>{1, 0, 0, 1, 1, 1}));
  for (const float wrong : {-0.1f, 1.5f, std::nanf("")}) {
    const std::vector<float> bad = {0.5f, wrong};
    const Status status = dynamic_tree_prune(logits, 2, 3, bad, options, selector, kept.data(),
                                             weights.data(), mask.data());
    EXPECT_NE(status.message().find("row 1 of the uncertainty"), std::string::npos);
  }
}

TEST(DynamicTreePrune, ARowThatIsNoDistributionIsNamed) {
  const std::vector<float> logits = {0.f, 1.f, std::nanf(""), 1.f};
  CandidateSelector selector(2);
  ControllerOptions options;
  options.max_tree_width = 1;
  int32_t kept[2];
  float weights[2];
  uint8_t mask[2];
  const Status status =
      dynamic_tree_prune(logits, 2, 2, {}, options, selector, kept, weights, mask);
  EXPECT_NE(status.message().find("row 1"), std::string::npos) << status.message();
}

TEST(BlockSparseVerify, EveryVerifierReturnsAPathOfTheTreeAndAllocatesNothing) {
  BlockSparseVerifier verifier(kVocabulary);
  int longest = 0;
  for (uint32_t seed = 0; seed < 60; ++seed) {
    const Input input = bush(seed, 0.3f);
    for (const Verifier which :
         {Verifier::kTargetDraw, Verifier::kRejection, Verifier::kTraversal}) {
      int32_t length = -1;
      int32_t next = -1;
      std::vector<int32_t> indices(5, 77);
      const uint64_t before = allocations();
      const Status status =
          verifier.verify(input.view(), {which, 1.f, seed, 3}, &length, indices.data(), &next);
      EXPECT_EQ(allocations(), before);
      ASSERT_TRUE(status.ok()) << status.message();
      ASSERT_GE(next, 0);
      ASSERT_LT(next, kVocabulary);
      longest = std::max(longest, length);
      // Nodes 0, 1, 2 hang from the root, 3 and 4 from node 0.
      if (length > 0) {
        EXPECT_LT(indices[0], 3);
      }
      if (length > 1) {
        EXPECT_EQ(indices[0], 0);
        EXPECT_GE(indices[1], 3);
      }
      for (int i = length; i < 5; ++i) EXPECT_EQ(indices[i], -1);
    }
  }
  EXPECT_GT(longest, 0);
}

TEST(BlockSparseVerify, ATreeThatCannotBeIsRefused) {
  BlockSparseVerifier verifier(kVocabulary);
  int32_t length;
  int32_t next;
  std::vector<int32_t> indices(5);
  const auto why = [&](const Input& input, Verifier which, float temperature) {
    const Status status =
        verifier.verify(input.view(), {which, temperature, 0, 0}, &length, indices.data(), &next);
    return status.ok() ? std::string("verified") : status.message();
  };
  Input input = bush(1, 0.3f);
  EXPECT_EQ(why(input, Verifier::kRejection, 1.f), "verified");
  EXPECT_NE(why(input, Verifier::kBlock, 1.f).find("needs a chain"), std::string::npos);
  EXPECT_NE(why(input, Verifier::kTraversal, 0.f).find("temperature above 0"), std::string::npos);
  input.mask[5 * kWidth] = 1;  // a sixth node
  EXPECT_NE(why(input, Verifier::kTargetDraw, 1.f).find("6 children for 5 rows"),
            std::string::npos);
  input = bush(1, 0.3f);
  input.mask[0] = input.mask[1] = input.mask[3] = 0;
  EXPECT_NE(why(input, Verifier::kTargetDraw, 1.f).find("no earlier row"), std::string::npos);
  input = bush(1, 0.3f);
  for (float& weight : input.weights) weight *= 0.5f;  // stale weights
  EXPECT_NE(why(input, Verifier::kTraversal, 1.f).find("importance weights"), std::string::npos);
  EXPECT_EQ(why(input, Verifier::kTargetDraw, 1.f), "verified");  // which has no use for them
  input = bush(1, 0.3f);
  input.weights[3] = 0.f;  // a child outside its own proposal
  EXPECT_NE(why(input, Verifier::kRejection, 1.f), "verified");
}

}  // namespace
}  // namespace sapwood
