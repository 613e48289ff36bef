#include "tree/tree_shape.h"

#include <algorithm>

#include "tree/draft_tree.h"

namespace sapwood {

TreeShape TreeShape::chain(int length) {
  TreeShape shape;
  for (int i = 0; i < std::min(length, DraftTree::kCapacity); ++i) {
    shape.nodes_.push_back({static_cast<int16_t>(i - 1), 0});
  }
  return shape;
}

TreeShape TreeShape::likeliest(std::span<const float> by_rank, int nodes) {
  TreeShape shape;
  if (by_rank.empty()) return shape;
  struct Frontier {
    double expected;
    int depth;
    Node node;
  };
  const auto better = [](const Frontier& a, const Frontier& b) {
    if (a.expected != b.expected) return a.expected > b.expected;
    if (a.depth != b.depth) return a.depth < b.depth;
    return a.node.rank < b.node.rank;
  };
  std::vector<Frontier> frontier = {{by_rank[0], 1, {DraftTree::kRoot, 0}}};
  std::vector<double> expected;
  nodes = std::min(nodes, DraftTree::kCapacity);
  while (shape.size() < nodes && !frontier.empty()) {
    const auto best = std::min_element(frontier.begin(), frontier.end(), better);
    const Frontier taken = *best;
    frontier.erase(best);
    const int number = shape.size();
    shape.nodes_.push_back(taken.node);
    expected.push_back(taken.expected);
    frontier.push_back(
        {taken.expected * by_rank[0], taken.depth + 1, {static_cast<int16_t>(number), 0}});
    const int next_rank = taken.node.rank + 1;
    if (next_rank < static_cast<int>(by_rank.size())) {
      const double above =
          taken.node.parent == DraftTree::kRoot ? 1.0 : expected[taken.node.parent];
      frontier.push_back({above * by_rank[next_rank],
                          taken.depth,
                          {taken.node.parent, static_cast<int16_t>(next_rank)}});
    }
  }
  return shape;
}

}  // namespace sapwood
