// The pruning rules behind one interface, and trees sampled under them.
#include "tree/pruning.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <random>
#include <set>

#include "tree/sampled_tree.h"
#include "verify/chance.h"

namespace sapwood {
namespace {

struct Fixed {
  std::vector<int32_t> tokens;
  std::vector<float> log_q;
  Candidates view(float entropy = 1.f) const { return {tokens, log_q, entropy}; }
};

Fixed falling(std::vector<double> q) {
  Fixed fixed;
  for (size_t i = 0; i < q.size(); ++i) {
    fixed.tokens.push_back(static_cast<int32_t>(i) + 10);
    fixed.log_q.push_back(static_cast<float>(std::log(q[i])));
  }
  return fixed;
}

std::vector<int> kept_by(const Pruning& rule, const DraftTree& tree, int node,
                         const Candidates& candidates) {
  std::array<int, Candidates::kMost> ranks;
  const int n = rule.select(tree, node, candidates, ranks);
  return {ranks.begin(), ranks.begin() + n};
}

TEST(Pruning, EpsilonKeepsWhatIsNotFarBelowTheBest) {
  const Fixed fixed = falling({0.5, 0.26, 0.2, 0.04});
  DraftTree tree;
  const auto rule = epsilon_pruning(0.4f, 32);
  EXPECT_EQ(kept_by(*rule, tree, DraftTree::kRoot, fixed.view()), (std::vector<int>{0, 1, 2}));
  EXPECT_EQ(kept_by(*epsilon_pruning(0.4f, 2), tree, DraftTree::kRoot, fixed.view()).size(), 2u);
  EXPECT_EQ(kept_by(*epsilon_pruning(1.f, 32), tree, DraftTree::kRoot, fixed.view()).size(), 1u);
}

TEST(Pruning, ABeamNarrowsWithDepthDownToOne) {
  const Fixed fixed = falling({0.3, 0.25, 0.2, 0.15, 0.1});
  DraftTree tree;
  const int a = tree.add(DraftTree::kRoot, 1, -1, -1, 0.5f);
  const int b = tree.add(a, 1, -1, -1, 0.5f);
  const auto rule = beam_decay_pruning(4, 0.5f);
  EXPECT_EQ(kept_by(*rule, tree, DraftTree::kRoot, fixed.view()).size(), 4u);
  EXPECT_EQ(kept_by(*rule, tree, a, fixed.view()).size(), 2u);
  EXPECT_EQ(kept_by(*rule, tree, b, fixed.view()).size(), 1u);
}

TEST(Pruning, TheControllerKeepsMoreOfAnUncertainDraft) {
  const Fixed fixed = falling({0.6, 0.15, 0.1, 0.08, 0.07});
  DraftTree tree;
  const auto rule = soft_pruning({});
  const size_t sure = kept_by(*rule, tree, DraftTree::kRoot, fixed.view(0.3f)).size();
  const size_t unsure = kept_by(*rule, tree, DraftTree::kRoot, fixed.view(3.f)).size();
  EXPECT_EQ(sure, 2u);    // 1 - 0.3 of the mass
  EXPECT_EQ(unsure, 5u);  // 1 - 0.02
}

TEST(Pruning, ADiverseTreeDoesNotRepeatAPath) {
  const Fixed fixed = falling({0.4, 0.3, 0.2, 0.1});
  DraftTree tree;
  const int a = tree.add(DraftTree::kRoot, 1, -1, -1, 0.5f);
  const int b = tree.add(DraftTree::kRoot, 2, -1, -1, 0.5f);
  tree.add(a, 11, -1, -1, 0.5f);
  tree.add(a, 10, -1, -1, 0.5f);
  // Under b: 11 would make a path that agrees with an old one in one position of two.
  EXPECT_EQ(kept_by(*diverse(no_pruning(4), 0.5f), tree, b, fixed.view()),
            (std::vector<int>{0, 2, 3}));
  EXPECT_EQ(kept_by(*diverse(no_pruning(4), 0.6f), tree, b, fixed.view()).size(), 4u);
}

TEST(Pruning, AShapeGivesEachNodeItsNumberOfChildren) {
  const Fixed fixed = falling({0.4, 0.3, 0.2, 0.1});
  const std::array<float, 2> by_rank = {0.6f, 0.3f};
  const TreeShape shape = TreeShape::likeliest(by_rank, 4);
  const auto rule = shape_pruning(shape, "four");
  DraftTree tree;
  for (int grown = 0; grown < 10; ++grown) {  // as its own drafter
    for (int node = DraftTree::kRoot; node < tree.size(); ++node) {
      for (const int rank : kept_by(*rule, tree, node, fixed.view())) {
        tree.add(node, fixed.tokens[rank], -1, -1, 0.5f);  // again and again: only once it counts
      }
    }
  }
  EXPECT_EQ(tree.size(), shape.size());
}

TEST(Pruning, ShapesAreNamedOrRefused) {
  EXPECT_EQ(named_shape("chain:5")->size(), 5);
  EXPECT_EQ(named_shape("medusa")->size(), 63);
  EXPECT_EQ(named_shape("eagle")->size(), 25);
  for (const char* wrong : {"chain:0", "chain:", "chain:257", "chain:3x", "bush", ""}) {
    EXPECT_FALSE(named_shape(wrong).ok()) << wrong;
  }
  // A steeper acceptance makes a deeper and narrower tree.
  const auto width = [](const TreeShape& shape) {
    const auto nodes = shape.nodes();
    return std::count_if(nodes.begin(), nodes.end(),
                         [](const TreeShape::Node& n) { return n.parent == DraftTree::kRoot; });
  };
  EXPECT_GT(width(named_shape("medusa").value()), width(named_shape("eagle").value()));
}

// Random candidates for a node, the same for the same path.
Fixed candidates_of(const DraftTree& tree, int node, uint32_t seed) {
  for (int v = node; v != DraftTree::kRoot; v = tree.parent(v)) {
    seed = seed * 31 + static_cast<uint32_t>(tree.token(v)) + 1;
  }
  std::mt19937 random(seed);
  std::vector<double> q(12);
  for (double& x : q) x = std::exp(3.0 * static_cast<double>(random()) / 4294967296.0);
  std::sort(q.begin(), q.end(), std::greater<>());
  double whole = 0;
  for (const double x : q) whole += x;
  for (double& x : q) x /= whole;
  return falling(q);
}

TEST(SampledTree, EveryNodeWasDrawnFromItsParentsProposalAndCountsAddUp) {
  SampledTreeGrower grower;
  DraftTree tree;
  Proposals proposals;
  std::mt19937 random(12);
  for (uint64_t round = 0; round < 300; ++round) {
    CounterChance chance(round, RandomStream::kDraft, round);
    const SampledGrowth growth{static_cast<int>(random() % 60), static_cast<int>(random() % 7),
                               1 + static_cast<int>(random() % 6)};
    const auto rule = round % 2 == 0 ? soft_pruning({}) : epsilon_pruning(0.3f, 5);
    const uint32_t seed = random();
    Fixed held;
    tree.clear();
    proposals.clear();
    std::set<int> expanded;
    const Status grown = grower.grow(
        growth, rule.get(),
        [&](int node) -> Result<Expansion> {
          EXPECT_TRUE(expanded.insert(node).second);
          held = candidates_of(tree, node, seed);
          return Expansion{held.view(), static_cast<float>(seed % 90) / 100.f};
        },
        chance, tree, proposals);
    ASSERT_TRUE(grown.ok()) << grown.message();
    ASSERT_LE(tree.size(), growth.max_nodes);
    ASSERT_LE(tree.max_depth(), growth.max_depth);
    for (int node = DraftTree::kRoot; node < tree.size(); ++node) {
      const Proposals::View view = proposals.at(node);
      int children = 0;
      double together = 0;
      for (int c = tree.first_child(node); c != DraftTree::kNone; c = tree.next_sibling(c)) {
        const auto at = std::find(view.tokens.begin(), view.tokens.end(), tree.token(c));
        ASSERT_NE(at, view.tokens.end());
        ASSERT_NEAR(std::exp(tree.log_q_kept(c)), view.q[at - view.tokens.begin()], 1e-6);
        ASSERT_LE(tree.log_q(c), tree.log_q_kept(c) + 1e-6f);  // truncation only adds weight
        together += tree.acceptance(c);
        ++children;
      }
      ASSERT_EQ(children, proposals.drawn(node));
      ASSERT_LE(children, growth.max_children);
      ASSERT_LE(together, 1.0 + 1e-5);
    }
  }
}

TEST(SampledTree, AWidthOneTreeIsTheChainBitForBit) {
  SampledTreeGrower grower;
  DraftTree tree;
  Proposals proposals;
  Fixed held;
  CounterChance chance(5, RandomStream::kDraft, 0);
  const auto all = no_pruning(32);
  ASSERT_TRUE(grower
                  .grow(
                      {6, 6, 1}, all.get(),
                      [&](int node) -> Result<Expansion> {
                        held = candidates_of(tree, node, 77);
                        return Expansion{held.view(), 0.7f};
                      },
                      chance, tree, proposals)
                  .ok());
  CounterChance again(5, RandomStream::kDraft, 0);
  DraftTree chain;
  Proposals law;
  for (int node = DraftTree::kRoot; chain.size() < 6; ++node) {
    const Fixed here = candidates_of(chain, node, 77);
    ASSERT_TRUE(law.set(node, here.tokens, here.log_q));
    const int entry = law.draw(node, again);
    chain.add(node, here.tokens[entry], 0, 0, 1.f);
  }
  ASSERT_EQ(tree.size(), 6);
  for (int v = 0; v < 6; ++v) {
    EXPECT_EQ(tree.token(v), chain.token(v));
    EXPECT_EQ(tree.parent(v), v - 1);
  }
}

TEST(SampledTree, AShapeIsDrawnNodeByNodeWhereverThereIsSomethingLeftToDraw) {
  SampledTreeGrower grower;
  DraftTree tree;
  Proposals proposals;
  Fixed held;
  const TreeShape shape = named_shape("eagle").value();
  const auto grow = [&](const Pruning& rule, int max_nodes, int max_depth) {
    CounterChance chance(8, RandomStream::kDraft, 0);
    tree.clear();
    proposals.clear();
    SampledGrowth growth{max_nodes, max_depth};
    growth.shape = &shape;
    EXPECT_TRUE(grower
                    .grow(
                        growth, &rule,
                        [&](int node) -> Result<Expansion> {
                          held = candidates_of(tree, node, 5);
                          return Expansion{held.view(), 0.5f};
                        },
                        chance, tree, proposals)
                    .ok());
  };
  grow(*no_pruning(32), 256, 256);
  ASSERT_EQ(tree.size(), shape.size());
  for (int v = 0; v < tree.size(); ++v) {
    EXPECT_EQ(tree.parent(v), shape.nodes()[static_cast<size_t>(v)].parent);
  }
  grow(*no_pruning(1), 256, 256);  // one candidate a node leaves nothing for its siblings
  EXPECT_EQ(tree.size(), tree.max_depth());
  grow(*no_pruning(32), 9, 2);
  EXPECT_LE(tree.size(), 9);
  EXPECT_EQ(tree.max_depth(), 2);
}

TEST(SampledTree, AChainCutByEntropyIsAsLongAsTheFirstPositionAllows) {
  SampledTreeGrower grower;
  DraftTree tree;
  Proposals proposals;
  const std::vector<int32_t> tokens = {1, 2};
  const std::vector<float> log_q = {-0.1f, -2.f};
  for (const auto& [entropy, length] : {std::pair{0.3f, 8}, {0.7f, 4}, {2.f, 1}}) {
    CounterChance chance(8, RandomStream::kDraft, 0);
    tree.clear();
    proposals.clear();
    SampledGrowth growth{20, 20, 1};
    growth.length_by_entropy = true;
    ASSERT_TRUE(grower
                    .grow(
                        growth, nullptr,
                        [&](int node) -> Result<Expansion> {
                          // Later positions have no say.
                          const float here = node == DraftTree::kRoot ? entropy : 5.f;
                          return Expansion{Candidates{tokens, log_q, here}, 0.5f};
                        },
                        chance, tree, proposals)
                    .ok());
    EXPECT_EQ(tree.size(), length);
  }
}

TEST(SampledTree, GrowthStopsWhereAnotherRowDoesNotPay) {
  SampledTreeGrower grower;
  DraftTree tree;
  Proposals proposals;
  Fixed held;
  const std::vector<int> rows = {1, 4, 256};
  const std::vector<double> dear = {1.0, 4.0, 256.0};
  const std::vector<double> cheap = {1.0, 1.0, 1.0};
  const auto all = no_pruning(32);
  const auto size_at = [&](const std::vector<double>& cost, float acceptance) {
    const CostCurve curve = CostCurve::measured(rows, cost);
    CounterChance chance(5, RandomStream::kDraft, 0);
    tree.clear();
    proposals.clear();
    const SampledGrowth growth{40, 10, 4, &curve, 0};
    EXPECT_TRUE(grower
                    .grow(
                        growth, all.get(),
                        [&](int node) -> Result<Expansion> {
                          held = candidates_of(tree, node, 3);
                          return Expansion{held.view(), acceptance};
                        },
                        chance, tree, proposals)
                    .ok());
    return tree.size();
  };
  EXPECT_EQ(size_at(dear, 0.5f), 0);
  EXPECT_EQ(size_at(cheap, 0.5f), 40);
}

TEST(Proposals, WhatIsNoLawIsRefusedAndNothingIsDrawnTwice) {
  Proposals proposals;
  const std::vector<int32_t> tokens = {3, 1, 2};
  EXPECT_FALSE(proposals.set(0, {}, {}));
  EXPECT_FALSE(proposals.set(0, tokens, std::vector<float>{0.f}));
  EXPECT_FALSE(proposals.set(0, tokens, std::vector<float>(3, -INFINITY)));
  EXPECT_FALSE(proposals.set(-2, tokens, std::vector<float>(3, 0.f)));
  EXPECT_FALSE(proposals.set(0, std::vector<int32_t>(33, 1), std::vector<float>(33, 0.f)));
  EXPECT_TRUE(proposals.set(0, tokens, std::vector<float>{0.f, -INFINITY, 0.f}));
  EXPECT_FALSE(proposals.set(0, tokens, std::vector<float>(3, 0.f)));
  CounterChance chance(1, RandomStream::kDraft, 0);
  const std::set<int> drawn = {proposals.draw(0, chance), proposals.draw(0, chance)};
  EXPECT_EQ(drawn, (std::set<int>{0, 2}));
  EXPECT_EQ(proposals.draw(0, chance), -1);  // what has probability 0 is never drawn
  EXPECT_EQ(proposals.drawn(0), 2);
}

}  // namespace
}  // namespace sapwood
