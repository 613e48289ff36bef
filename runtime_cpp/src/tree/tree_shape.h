// Trees whose shape is fixed beforehand: each node is "candidate number r of that parent".
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace sapwood {

class TreeShape {
 public:
  struct Node {
    int16_t parent;  // an earlier node, or DraftTree::kRoot
    int16_t rank;    // 0: the likeliest candidate
  };

  static TreeShape chain(int length);

  // The `nodes` nodes with the largest expected acceptance when a candidate of rank r is accepted
  // with probability by_rank[r] at every depth: how Medusa (Cai et al., 2024, section 2.3.3) lays
  // out its sparse tree. Ties go to the shallower node, then to the lower rank.
  static TreeShape likeliest(std::span<const float> by_rank, int nodes);

  std::span<const Node> nodes() const { return nodes_; }
  int size() const { return static_cast<int>(nodes_.size()); }

 private:
  std::vector<Node> nodes_;
};

}  // namespace sapwood
