#include "draft/ngram_drafter.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <vector>

namespace sapwood {
namespace {

using Text = std::vector<int32_t>;

DraftRequest chain(int nodes) {
  DraftRequest request;
  request.growth = Growth::kChain;
  request.max_nodes = request.max_depth = nodes;
  return request;
}

Text tokens_of(const DraftTree& tree) { return {tree.tokens().begin(), tree.tokens().end()}; }

TEST(NgramDrafter, ARepeatedPassageIsDraftedAsItWentOn) {
  NgramDrafter drafter;
  ASSERT_TRUE(drafter.start(Text{1, 2, 3, 4, 5, 6, 7, 1, 2, 3}, 64).ok());
  DraftTree tree;
  ASSERT_TRUE(drafter.propose(chain(4), tree).ok());
  EXPECT_EQ(tokens_of(tree), (Text{4, 5, 6, 7}));
  for (int v = 0; v < tree.size(); ++v) EXPECT_EQ(tree.parent(v), v - 1);
}

TEST(NgramDrafter, ATextWithoutRepetitionIsNotDraftedFrom) {
  NgramDrafter drafter;
  ASSERT_TRUE(drafter.start(Text{1, 2, 3, 4}, 64).ok());
  DraftTree tree;
  ASSERT_TRUE(drafter.propose(chain(4), tree).ok());
  EXPECT_TRUE(tree.empty());
}

TEST(NgramDrafter, WhatCameMoreOftenComesFirstAndAllOfItIsOffered) {
  NgramDrafter drafter;
  ASSERT_TRUE(drafter.start(Text{9, 1, 9, 2, 9, 2, 9, 3, 9, 2, 9}, 64).ok());
  const std::array<float, 3> by_rank = {0.5f, 0.3f, 0.2f};
  const TreeShape shape = TreeShape::likeliest(by_rank, 3);
  DraftRequest request;
  request.growth = Growth::kShape;
  request.shape = &shape;
  request.max_nodes = 3;
  request.max_depth = 1;
  DraftTree tree;
  ASSERT_TRUE(drafter.propose(request, tree).ok());
  const int first = tree.first_child(DraftTree::kRoot);
  EXPECT_EQ(tree.token(first), 2);
  float previous = 1;
  double mass = 0;
  for (int v = first; v != DraftTree::kNone; v = tree.next_sibling(v)) {
    EXPECT_LE(tree.acceptance(v), previous);
    EXPECT_EQ(tree.log_q(v), tree.log_q_kept(v));
    previous = tree.acceptance(v);
    mass += std::exp(tree.log_q(v));
  }
  EXPECT_LE(mass, 1.0 + 1e-6);
}

TEST(NgramDrafter, RequestsAreLimitsInEveryGrowth) {
  std::mt19937 random(3);
  Text text(400);
  for (int32_t& token : text) token = static_cast<int32_t>(random() % 5);
  NgramDrafter drafter;
  ASSERT_TRUE(drafter.start(text, 1000).ok());
  const CostCurve curve =
      CostCurve::measured(std::array<int, 2>{1, 256}, std::array<double, 2>{1.0, 1.0});
  const std::array<float, 4> by_rank = {0.5f, 0.3f, 0.2f, 0.1f};
  const TreeShape shape = TreeShape::likeliest(by_rank, 200);
  for (const Growth growth : {Growth::kChain, Growth::kShape, Growth::kBudgeted}) {
    for (const int max_nodes : {0, 1, 5, 100, 1000}) {
      for (const int max_depth : {0, 1, 3, 50}) {
        DraftRequest request;
        request.growth = growth;
        request.shape = &shape;
        request.cost = &curve;
        request.max_nodes = max_nodes;
        request.max_depth = max_depth;
        DraftTree tree;
        ASSERT_TRUE(drafter.propose(request, tree).ok());
        EXPECT_LE(tree.size(), max_nodes);
        EXPECT_LE(tree.max_depth(), max_depth);
        EXPECT_EQ(tree.empty(), max_nodes == 0 || max_depth == 0);
        for (int v = DraftTree::kRoot; v < tree.size(); ++v) {
          double together = 0;
          for (int c = tree.first_child(v); c != DraftTree::kNone; c = tree.next_sibling(c)) {
            together += tree.acceptance(c);
          }
          EXPECT_LE(together, 1.0);
        }
      }
    }
  }
}

TEST(NgramDrafter, ATreeOfWidthOneIsTheChain) {
  std::mt19937 random(14);
  Text text(200);
  for (int32_t& token : text) token = static_cast<int32_t>(random() % 7);
  NgramDrafter drafter;
  int drafted = 0;
  for (size_t length = 20; length < text.size(); length += 9) {
    ASSERT_TRUE(drafter.start(std::span<const int32_t>(text).first(length), 400).ok());
    const TreeShape line = TreeShape::chain(6);
    DraftRequest request = chain(6);
    DraftTree as_chain;
    ASSERT_TRUE(drafter.propose(request, as_chain).ok());
    request.growth = Growth::kShape;
    request.shape = &line;
    DraftTree as_shape;
    ASSERT_TRUE(drafter.propose(request, as_shape).ok());
    request.growth = Growth::kBudgeted;
    request.max_width = 1;
    const CostCurve free_rows =
        CostCurve::measured(std::array<int, 2>{1, 64}, std::array<double, 2>{1.0, 1.0});
    request.cost = &free_rows;
    DraftTree as_budgeted;
    ASSERT_TRUE(drafter.propose(request, as_budgeted).ok());
    drafted += as_chain.size();
    EXPECT_EQ(as_chain.to_json(), as_shape.to_json());
    EXPECT_EQ(as_chain.to_json(), as_budgeted.to_json());
  }
  EXPECT_GT(drafted, 50);
}

TEST(NgramDrafter, NothingIsDraftedWhereRowsAreTooDear) {
  Text text;
  for (int i = 0; i < 50; ++i) text.insert(text.end(), {1, 2, 3});
  NgramDrafter drafter;
  ASSERT_TRUE(drafter.start(text, 1000).ok());
  const CostCurve dear =
      CostCurve::measured(std::array<int, 3>{1, 2, 256}, std::array<double, 3>{1.0, 2.0, 256.0});
  DraftRequest request;
  request.cost = &dear;
  request.max_nodes = request.max_depth = 16;
  DraftTree tree;
  ASSERT_TRUE(drafter.propose(request, tree).ok());
  EXPECT_TRUE(tree.empty());
}

// The estimates move to how often guesses really come true.
TEST(NgramDrafter, AcceptanceEstimatesConvergeToWhatIsSeen) {
  std::mt19937 random(6);
  NgramDrafter drafter;
  ASSERT_TRUE(drafter.start(Text{0}, 4000).ok());
  // After token t comes (t + 1) % 8 in three cases of four, else anything.
  int32_t token = 0;
  double predicted = 0;
  int came = 0;
  int tried = 0;
  for (int i = 0; i < 3000; ++i) {
    DraftTree tree;
    ASSERT_TRUE(drafter.propose(chain(1), tree).ok());
    token = random() % 4 != 0 ? (token + 1) % 8 : static_cast<int32_t>(random() % 8);
    if (i > 1000 && !tree.empty()) {
      predicted += tree.acceptance(0);
      came += tree.token(0) == token ? 1 : 0;
      ++tried;
    }
    drafter.follow(Text{token});
  }
  ASSERT_GT(tried, 1500);
  EXPECT_NEAR(predicted / tried, static_cast<double>(came) / tried, 0.05);
  EXPECT_GT(came, tried / 2);
}

TEST(NgramDrafter, TheSameTextGivesTheSameTree) {
  std::mt19937 random(12);
  Text text(300);
  for (int32_t& token : text) token = static_cast<int32_t>(random() % 6);
  const CostCurve curve = CostCurve::assumed();
  DraftRequest request;
  request.cost = &curve;
  request.overhead_ms = 20;
  request.max_nodes = request.max_depth = 31;
  std::string first;
  for (int round = 0; round < 2; ++round) {
    NgramDrafter drafter;
    ASSERT_TRUE(drafter.start(std::span<const int32_t>(text).first(100), 400).ok());
    drafter.follow(std::span<const int32_t>(text).subspan(100));
    DraftTree tree;
    ASSERT_TRUE(drafter.propose(request, tree).ok());
    EXPECT_GT(tree.size(), 3);
    if (round == 0) first = tree.to_json();
    EXPECT_EQ(tree.to_json(), first);
  }
}

TEST(AcceptanceTable, EstimatesMoveFromThePromiseToWhatCame) {
  AcceptanceTable table;
  EXPECT_GT(table.estimate(20, 0.4), table.estimate(1, 0.4));  // long contexts are believed more
  EXPECT_LE(table.estimate(20, 1.0), 1.0);
  for (int i = 0; i < 1000; ++i) table.observe(3, 0.4, i % 10 == 0);
  EXPECT_NEAR(table.estimate(3, 0.4), 0.1, 0.02);
  EXPECT_LE(table.trials(3, 0.4), AcceptanceTable::kMemory);
}

TEST(AcceptanceTable, ABrokenPromiseIsHeldAgainstOtherGuessesOfThatLengthOnly) {
  AcceptanceTable table;
  const double other_length = table.estimate(1, 0.95);
  for (int i = 0; i < 200; ++i) table.observe(3, 0.4, false);
  EXPECT_LT(table.estimate(3, 0.95), 0.1);
  EXPECT_DOUBLE_EQ(table.estimate(1, 0.95), other_length);
  for (int i = 0; i < 500; ++i) table.observe(3, 0.4, i % 5 < 2);  // and mended
  EXPECT_GT(table.estimate(3, 0.95), 0.6);
}

}  // namespace
}  // namespace sapwood
