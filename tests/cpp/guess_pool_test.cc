#include "draft/guess_pool.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <random>
#include <vector>

#include "measure/allocation_counter.h"

namespace sapwood {
namespace {

CostCurve curve_of(double one, double many) {
  return CostCurve::measured(std::array<int, 2>{1, 64}, std::array<double, 2>{one, many});
}

void fill(GuessPool& pool, std::mt19937& random, int guesses) {
  pool.clear();
  for (int i = 0; i < guesses; ++i) {
    const int parent = static_cast<int>(random() % (pool.size() + 1)) - 1;
    if (pool.find_child(parent, i) != GuessPool::kNone) continue;
    pool.add(parent, i, static_cast<float>(random() % 100) / 100.f);
  }
}

TEST(GuessPool, TheBestTreeOfEverySizeHasTheLikeliestGuessesAndTheirParents) {
  std::mt19937 random(4);
  GuessPool pool;
  const CostCurve free_rows = curve_of(1, 1);
  for (int round = 0; round < 300; ++round) {
    fill(pool, random, 1 + static_cast<int>(random() % 60));
    const int nodes = 1 + static_cast<int>(random() % 40);
    Budget budget(free_rows, 0, nodes);
    const auto selected = pool.select(budget).first(static_cast<size_t>(budget.best_nodes()));
    DraftTree tree;
    pool.build(selected, tree);
    ASSERT_EQ(tree.size(), static_cast<int>(selected.size()));
    // Against sorting: with rows for nothing it is the sum of the largest path acceptances.
    std::vector<float> paths;
    for (int g = 0; g < pool.size(); ++g) paths.push_back(pool.at(g).path_acceptance);
    std::sort(paths.rbegin(), paths.rend());
    double best = 1;
    for (int i = 0; i < std::min<int>(nodes, static_cast<int>(paths.size())); ++i) best += paths[i];
    EXPECT_NEAR(tree.expected_tokens(), best, 1e-5);
  }
}

TEST(GuessPool, WhereTheTextGoesOnToAGuessWhatIsBelowItStays) {
  std::mt19937 random(5);
  for (int round = 0; round < 200; ++round) {
    GuessPool pool;
    fill(pool, random, 2 + static_cast<int>(random() % 80));
    std::vector<int16_t> nodes(static_cast<size_t>(pool.size()));
    for (int g = 0; g < pool.size(); ++g) {
      pool.at(g).node = static_cast<int16_t>(g);  // of a cache that numbers as the pool does
      nodes[static_cast<size_t>(g)] = static_cast<int16_t>(1000 + g);
      pool.at(g).log_q = static_cast<float>(-g);
    }
    const GuessPool old = pool;
    const int root = static_cast<int>(random() % static_cast<size_t>(pool.size()));
    pool.make_root(root, nodes);
    EXPECT_EQ(pool.at(GuessPool::kRoot).node, DraftTree::kRoot);
    int kept = 0;
    for (int g = 0; g < old.size(); ++g) {
      // The path of tokens below the new root, if it lies there.
      std::vector<int32_t> path;
      int above = g;
      for (; above >= 0 && above != root; above = old.at(above).parent) {
        path.insert(path.begin(), old.at(above).token);
      }
      if (above != root || path.empty()) continue;
      ++kept;
      int found = GuessPool::kRoot;
      double reached = 1;
      for (const int32_t token : path) {
        found = pool.find_child(found, token);
        ASSERT_NE(found, GuessPool::kNone);
        reached *= static_cast<double>(pool.at(found).acceptance);
      }
      EXPECT_EQ(pool.at(found).depth, static_cast<int>(path.size()));
      EXPECT_EQ(pool.at(found).node, 1000 + g);
      EXPECT_EQ(pool.at(found).log_q, static_cast<float>(-g));
      EXPECT_NEAR(pool.at(found).path_acceptance, reached, 1e-5);
    }
    EXPECT_EQ(pool.size(), kept);
  }
}

TEST(GuessPool, ChildrenAreFoundByTokenAndByRank) {
  GuessPool pool;
  EXPECT_EQ(pool.child(GuessPool::kRoot, 0), GuessPool::kNone);
  const int a = pool.add(GuessPool::kRoot, 10, 0.5f);
  const int b = pool.add(GuessPool::kRoot, 11, 0.25f);
  const int c = pool.add(b, 10, 0.5f);
  EXPECT_EQ(pool.find_child(GuessPool::kRoot, 11), b);
  EXPECT_EQ(pool.find_child(a, 10), GuessPool::kNone);
  EXPECT_EQ(pool.child(GuessPool::kRoot, 1), b);
  EXPECT_EQ(pool.child(GuessPool::kRoot, 2), GuessPool::kNone);
  EXPECT_EQ(pool.at(c).depth, 2);
  EXPECT_DOUBLE_EQ(pool.children_acceptance(GuessPool::kRoot), 0.75);
  pool.at(b).acceptance = 1.f;
  pool.refresh();
  EXPECT_FLOAT_EQ(pool.at(c).path_acceptance, 0.5f);
}

TEST(GuessPool, AFullPoolTakesNoMoreAndNothingAllocates) {
  GuessPool pool;
  const CostCurve curve = curve_of(1, 2);
  const uint64_t before = allocations();
  for (int i = 0; i < GuessPool::kCapacity; ++i) {
    ASSERT_NE(pool.add(GuessPool::kRoot, i, 0.001f), GuessPool::kNone);
  }
  EXPECT_EQ(pool.add(GuessPool::kRoot, -1, 0.5f), GuessPool::kNone);
  Budget budget(curve, 0, 31);
  pool.select(budget);
  EXPECT_EQ(allocations() - before, 0u);
}

TEST(GuessPool, WhatWasPrunedGetsIntoNoTreeButTheTextMayGoThere) {
  GuessPool pool;
  const int likely = pool.add(GuessPool::kRoot, 1, 0.6f);
  const int below = pool.add(likely, 2, 0.5f);
  const int pruned = pool.add(GuessPool::kRoot, 3, 0.f);
  pool.at(pruned).pruned = true;
  pool.at(pruned).probability = 0.4f;
  pool.add(pruned, 4, 0.5f);
  pool.refresh();
  Budget budget(curve_of(1, 1), 0, 8);
  const auto selected = pool.select(budget);
  EXPECT_EQ(std::vector<int>(selected.begin(), selected.end()), (std::vector<int>{likely, below}));
  const auto all = pool.by_chance(0.25f);
  EXPECT_EQ(std::vector<int>(all.begin(), all.end()), (std::vector<int>{likely, pruned, below}));
  // The text goes there: what is below it is what comes next.
  pool.at(pruned).node = 0;
  pool.make_root(pruned, {});
  EXPECT_EQ(pool.size(), 1);
  EXPECT_EQ(pool.at(0).token, 4);
  EXPECT_FLOAT_EQ(pool.at(0).path_acceptance, 0.5f);
}

}  // namespace
}  // namespace sapwood
