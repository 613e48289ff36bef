#include "tree/draft_tree.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <random>
#include <vector>

#include "tree/row_layout.h"
#include "tree/tree_shape.h"

namespace sapwood {
namespace {

// A random tree, every node with the parent it was given beside it.
std::vector<int> fill_randomly(DraftTree& tree, int nodes, std::mt19937& random) {
  std::vector<int> parents;
  tree.clear();
  while (tree.size() < nodes) {
    const int parent = static_cast<int>(random() % (tree.size() + 1)) - 1;
    const auto token = static_cast<int32_t>(random() % 1000);
    const float acceptance = static_cast<float>(random() % 100) / 100.f;
    if (tree.add(parent, token, -1.f, -0.5f, acceptance) >= 0) parents.push_back(parent);
  }
  return parents;
}

TEST(DraftTree, DepthsPathsAndAcceptancesFollowFromTheParents) {
  std::mt19937 random(1);
  DraftTree tree;
  for (const int nodes : {1, 2, 17, 256}) {
    const std::vector<int> parents = fill_randomly(tree, nodes, random);
    double expected = 1;
    for (int v = 0; v < nodes; ++v) {
      ASSERT_EQ(tree.parent(v), parents[v]);
      ASSERT_LT(tree.parent(v), v);
      ASSERT_EQ(tree.depth(v), tree.depth(parents[v]) + 1);
      ASSERT_FLOAT_EQ(tree.path_acceptance(v),
                      tree.path_acceptance(parents[v]) * tree.acceptance(v));
      expected += tree.path_acceptance(v);
      std::vector<int> path(tree.depth(v));
      ASSERT_EQ(tree.path(v, path), tree.depth(v));
      ASSERT_EQ(path.back(), v);
      for (size_t i = 0; i < path.size(); ++i) {
        ASSERT_EQ(tree.parent(path[i]), i == 0 ? DraftTree::kRoot : path[i - 1]);
      }
      for (int u = 0; u < nodes; ++u) {
        const bool on_path = std::find(path.begin(), path.end(), u) != path.end();
        ASSERT_EQ(tree.is_ancestor_or_self(u, v), on_path);
      }
      ASSERT_TRUE(tree.is_ancestor_or_self(DraftTree::kRoot, v));
    }
    EXPECT_NEAR(tree.expected_tokens(), expected, 1e-5);
  }
}

TEST(DraftTree, ChildrenAreFoundByTokenAndListedInOrder) {
  DraftTree tree;
  const int a = tree.add(DraftTree::kRoot, 10, 0, 0, 1);
  const int b = tree.add(DraftTree::kRoot, 11, 0, 0, 1);
  const int c = tree.add(a, 10, 0, 0, 1);
  EXPECT_EQ(tree.find_child(DraftTree::kRoot, 11), b);
  EXPECT_EQ(tree.find_child(a, 10), c);
  EXPECT_EQ(tree.find_child(b, 10), DraftTree::kNone);
  EXPECT_EQ(tree.first_child(DraftTree::kRoot), a);
  EXPECT_EQ(tree.next_sibling(a), b);
  EXPECT_EQ(tree.next_sibling(b), DraftTree::kNone);
}

TEST(DraftTree, ASecondChildWithTheSameTokenIsRefused) {
  DraftTree tree;
  EXPECT_EQ(tree.add(DraftTree::kRoot, 10, 0, 0, 1), 0);
  EXPECT_EQ(tree.add(DraftTree::kRoot, 10, 0, 0, 1), DraftTree::kNone);
  EXPECT_EQ(tree.size(), 1);
}

TEST(DraftTree, AFullTreeAndAnUnknownParentAreRefused) {
  DraftTree tree;
  EXPECT_EQ(tree.add(0, 1, 0, 0, 1), DraftTree::kNone);
  EXPECT_EQ(tree.add(DraftTree::kNone, 1, 0, 0, 1), DraftTree::kNone);
  for (int i = 0; i < DraftTree::kCapacity; ++i) ASSERT_EQ(tree.add(i - 1, i, 0, 0, 1), i);
  EXPECT_TRUE(tree.full());
  EXPECT_EQ(tree.max_depth(), DraftTree::kCapacity);
  EXPECT_EQ(tree.add(DraftTree::kRoot, 1000, 0, 0, 1), DraftTree::kNone);
}

TEST(DraftTree, APrefixOfTheNumberingIsTheTreeThatWasBuiltFromIt) {
  std::mt19937 random(2);
  for (int round = 0; round < 50; ++round) {
    DraftTree whole;
    fill_randomly(whole, 40, random);
    const int keep = static_cast<int>(random() % 41);
    DraftTree prefix;
    for (int v = 0; v < keep; ++v) {
      prefix.add(whole.parent(v), whole.token(v), whole.log_q(v), whole.log_q_kept(v),
                 whole.acceptance(v));
    }
    whole.truncate(keep);
    EXPECT_EQ(whole.to_json(), prefix.to_json());
    for (int v = DraftTree::kRoot; v < keep; ++v) {
      ASSERT_EQ(whole.first_child(v), prefix.first_child(v));
      if (v >= 0) {
        ASSERT_EQ(whole.next_sibling(v), prefix.next_sibling(v));
      }
    }
    // And it grows on as if it had never been longer.
    EXPECT_EQ(whole.add(DraftTree::kRoot, 5000, 0, 0, 1), keep);
    EXPECT_EQ(whole.find_child(DraftTree::kRoot, 5000), keep);
  }
}

TEST(DraftTree, TextShowsTheTreeDepthFirstAndIndented) {
  DraftTree tree;
  const int a = tree.add(DraftTree::kRoot, 1, std::log(0.5f), 0, 0.5f);
  tree.add(DraftTree::kRoot, 2, std::log(0.25f), 0, 0.25f);
  tree.add(a, 3, std::log(0.5f), 0, 0.5f);
  EXPECT_EQ(tree.to_text(),
            "1  q 0.500  accept 0.500  path 0.500\n"
            "  3  q 0.500  accept 0.500  path 0.250\n"
            "2  q 0.250  accept 0.250  path 0.250\n");
  EXPECT_EQ(tree.to_text([](int32_t token) { return std::string(token, 'x'); }).substr(0, 3),
            "x  ");
}

TEST(DraftTree, JsonNamesEveryFieldAndWritesInfinityAsNull) {
  DraftTree tree;
  tree.add(DraftTree::kRoot, 7, -std::numeric_limits<float>::infinity(), -0.5f, 0.25f);
  EXPECT_EQ(tree.to_json(),
            "{\"nodes\":[{\"token\":7,\"parent\":-1,\"depth\":1,\"log_q\":null,"
            "\"log_q_kept\":-0.5,\"acceptance\":0.25,\"path_acceptance\":0.25}]}");
  tree.clear();
  EXPECT_EQ(tree.to_json(), "{\"nodes\":[]}");
}

TEST(TreeShape, AChainIsATreeOfWidthOne) {
  const TreeShape shape = TreeShape::chain(3);
  ASSERT_EQ(shape.size(), 3);
  for (int i = 0; i < 3; ++i) {
    EXPECT_EQ(shape.nodes()[i].parent, i - 1);
    EXPECT_EQ(shape.nodes()[i].rank, 0);
  }
}

TEST(TreeShape, TheLikeliestNodesAreThoseOfAllPossibleTrees) {
  const std::array<float, 3> by_rank = {0.6f, 0.25f, 0.1f};
  const TreeShape shape = TreeShape::likeliest(by_rank, 12);
  ASSERT_EQ(shape.size(), 12);
  std::vector<double> chosen;
  for (const TreeShape::Node& node : shape.nodes()) {
    chosen.push_back((node.parent < 0 ? 1.0 : chosen[node.parent]) * by_rank[node.rank]);
  }
  // Every product of up to eight ranks, largest first.
  std::vector<double> all = {1.0};
  std::vector<double> level = {1.0};
  for (int depth = 0; depth < 8; ++depth) {
    std::vector<double> next;
    for (const double above : level) {
      for (const float rank : by_rank) next.push_back(above * rank);
    }
    all.insert(all.end(), next.begin(), next.end());
    level = next;
  }
  std::sort(all.rbegin(), all.rend());
  std::sort(chosen.rbegin(), chosen.rend());
  for (int i = 0; i < 12; ++i) EXPECT_NEAR(chosen[i], all[i + 1], 1e-12);
}

TEST(RowLayout, PositionsAreDepthsAndPathsAreSlotsOfAncestors) {
  std::mt19937 random(3);
  RowLayout layout(257);
  for (const int nodes : {0, 1, 9, 256}) {
    DraftTree tree;
    fill_randomly(tree, nodes, random);
    std::vector<int32_t> context(static_cast<size_t>(random() % 50));
    std::vector<int32_t> slots(nodes + 1);
    for (size_t i = 0; i < context.size(); ++i) context[i] = static_cast<int32_t>(2 * i);
    for (size_t i = 0; i < slots.size(); ++i) slots[i] = static_cast<int32_t>(1000 + 3 * i);
    const RowBatch batch = layout.tree_rows(77, tree, context, slots);
    ASSERT_EQ(batch.rows(), nodes + 1);
    ASSERT_EQ(batch.tokens[0], 77);
    for (int v = DraftTree::kRoot; v < nodes; ++v) {
      const int row = v + 1;
      ASSERT_EQ(batch.output_rows[row], row);
      ASSERT_EQ(batch.slots[row], slots[row]);
      ASSERT_EQ(batch.positions[row], static_cast<int>(context.size()) + tree.depth(v));
      std::vector<int32_t> path = {slots[0]};
      if (v >= 0) {
        ASSERT_EQ(batch.tokens[row], tree.token(v));
        std::vector<int> ancestors(tree.depth(v));
        tree.path(v, ancestors);
        for (const int u : ancestors) path.push_back(slots[u + 1]);
      }
      const std::vector<int32_t> seen(batch.path_slots.begin() + batch.path_begin[row],
                                      batch.path_slots.begin() + batch.path_end[row]);
      ASSERT_EQ(seen, path);
    }
  }
}

TEST(RowLayout, AWidthOneTreeIsLaidOutAsTheSameTextIs) {
  RowLayout tree_layout(16);
  RowLayout text_layout(16);
  const std::array<int32_t, 3> context = {4, 5, 6};
  const std::array<int32_t, 5> slots = {7, 8, 9, 10, 11};
  const std::array<int32_t, 5> text = {20, 21, 22, 23, 24};
  DraftTree tree;
  for (int i = 1; i < 5; ++i) tree.add(i - 2, text[i], 0, 0, 1);
  const RowBatch chain = tree_layout.tree_rows(text[0], tree, context, slots);
  const RowBatch plain = text_layout.text_rows(text, context, slots);
  const auto equal = [](std::span<const int32_t> a, std::span<const int32_t> b) {
    return std::equal(a.begin(), a.end(), b.begin(), b.end());
  };
  EXPECT_TRUE(equal(chain.tokens, plain.tokens));
  EXPECT_TRUE(equal(chain.positions, plain.positions));
  EXPECT_TRUE(equal(chain.slots, plain.slots));
  EXPECT_TRUE(equal(chain.path_slots, plain.path_slots));
  EXPECT_TRUE(equal(chain.path_begin, plain.path_begin));
  EXPECT_TRUE(equal(chain.path_end, plain.path_end));
  EXPECT_EQ(plain.output_rows.size(), 0u);
}

}  // namespace
}  // namespace sapwood
