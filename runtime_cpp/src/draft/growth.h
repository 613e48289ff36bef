// Growing a tree from a function that names the likely successors of a node.
//
// For drafters that can look a node's candidates up one node at a time (n-grams, tables): chains,
// fixed shapes and budgeted best-first trees are the same few lines over the same candidates.
#pragma once

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <span>
#include <vector>

#include "draft/drafter.h"
#include "tree/controller.h"

namespace sapwood {

struct Candidate {
  int32_t token;
  float log_q;       // the drafter's own log probability
  float acceptance;  // predicted probability that the target picks it here
};

// In nats, of what comes next: one of the candidates or, with what their acceptances leave, none.
inline float entropy(std::span<const Candidate> candidates) {
  const auto term = [](float p) { return p > 0 ? -p * std::log(p) : 0.f; };
  float left = 1;
  float sum = 0;
  for (const Candidate& candidate : candidates) {
    left -= candidate.acceptance;
    sum += term(candidate.acceptance);
  }
  return sum + term(left);
}

// Holds the scratch of growing; made once, allocates nothing later.
class TreeGrower {
 public:
  static constexpr int kMaxWidth = 32;

  TreeGrower() : candidates_(static_cast<size_t>(DraftTree::kCapacity + 1) * kMaxWidth) {
    frontier_.reserve(2 * DraftTree::kCapacity + 2);
  }

  // expand(node, out) writes at most out.size() candidates of `node` (kRoot included), the
  // likeliest to be accepted first, tokens distinct, and returns how many. It is called at most
  // once for a node, and always after the node was added; `added(node, rank)` tells which of its
  // parent's candidates a new node is.
  template <typename Expand, typename Added>
  void grow(const DraftRequest& request, Expand&& expand, Added&& added, DraftTree& tree) {
    const int max_nodes = std::min(request.max_nodes, DraftTree::kCapacity);
    if (max_nodes < 1 || request.max_depth < 1) return;
    switch (request.growth) {
      case Growth::kChain: {
        int node = DraftTree::kRoot;
        int length = std::min(max_nodes, request.max_depth);
        while (tree.size() < length) {
          const bool measured = request.length_by_entropy && node == DraftTree::kRoot;
          const int found = expand_into(node, measured ? kMaxWidth : 1, expand);
          if (found == 0) break;
          if (measured) {
            const std::span<const Candidate> all(candidates_of(node), static_cast<size_t>(found));
            length = std::min(length, draft_length(entropy(all)));
          }
          node = add(tree, node, 0, added);
        }
        break;
      }
      case Growth::kShape:
        if (request.shape != nullptr) grow_shape(request, max_nodes, expand, added, tree);
        break;
      case Growth::kBudgeted:
        if (request.cost != nullptr) grow_budgeted(request, max_nodes, expand, added, tree);
        break;
    }
  }

 private:
  // The next candidate of a node that has not been added yet.
  struct Open {
    float path_acceptance;
    int16_t parent;
    int16_t rank;
    // For a heap: less likely is lower; among equals the older node and the lower rank win, so that
    // the tree is the same on every machine.
    bool operator<(const Open& other) const {
      if (path_acceptance != other.path_acceptance) return path_acceptance < other.path_acceptance;
      if (parent != other.parent) return parent > other.parent;
      return rank > other.rank;
    }
  };

  Candidate* candidates_of(int node) {
    return candidates_.data() + static_cast<size_t>(node + 1) * kMaxWidth;
  }

  template <typename Expand>
  int expand_into(int node, int width, Expand& expand) {
    const std::span<Candidate> out(candidates_of(node), std::clamp(width, 0, kMaxWidth));
    counts_[node + 1] = static_cast<int16_t>(expand(node, out));
    return counts_[node + 1];
  }

  template <typename Added>
  int add(DraftTree& tree, int parent, int rank, Added& added) {
    const Candidate& c = candidates_of(parent)[rank];
    const int node = tree.add(parent, c.token, c.log_q, c.log_q, c.acceptance);
    if (node != DraftTree::kNone) added(node, rank);
    return node;
  }

  template <typename Expand, typename Added>
  void grow_shape(const DraftRequest& request, int max_nodes, Expand& expand, Added& added,
                  DraftTree& tree) {
    // shape node -> tree node; candidates that do not exist leave a gap with all below it.
    std::array<int16_t, DraftTree::kCapacity> placed;
    std::array<bool, DraftTree::kCapacity + 1> expanded{};
    const std::span<const TreeShape::Node> nodes = request.shape->nodes();
    for (size_t i = 0; i < nodes.size() && tree.size() < max_nodes; ++i) {
      placed[i] = DraftTree::kNone;
      const int parent =
          nodes[i].parent == DraftTree::kRoot ? DraftTree::kRoot : placed[nodes[i].parent];
      if (parent == DraftTree::kNone || tree.depth(parent) >= request.max_depth) continue;
      if (!expanded[parent + 1]) {
        expand_into(parent, request.max_width, expand);
        expanded[parent + 1] = true;
      }
      if (nodes[i].rank >= counts_[parent + 1]) continue;
      placed[i] = static_cast<int16_t>(add(tree, parent, nodes[i].rank, added));
    }
  }

  template <typename Expand, typename Added>
  void grow_budgeted(const DraftRequest& request, int max_nodes, Expand& expand, Added& added,
                     DraftTree& tree) {
    Budget budget(*request.cost, request.overhead_ms, max_nodes);
    frontier_.clear();
    const auto open = [&](int parent, int rank) {
      if (rank >= counts_[parent + 1]) return;
      const float path = tree.path_acceptance(parent) * candidates_of(parent)[rank].acceptance;
      frontier_.push_back({path, static_cast<int16_t>(parent), static_cast<int16_t>(rank)});
      std::push_heap(frontier_.begin(), frontier_.end());
    };
    expand_into(DraftTree::kRoot, request.max_width, expand);
    open(DraftTree::kRoot, 0);
    while (!frontier_.empty() && tree.size() < max_nodes) {
      std::pop_heap(frontier_.begin(), frontier_.end());
      const Open best = frontier_.back();
      frontier_.pop_back();
      if (!budget.wants(best.path_acceptance)) break;
      const int node = add(tree, best.parent, best.rank, added);
      if (node == DraftTree::kNone) break;
      budget.add(best.path_acceptance);
      open(best.parent, best.rank + 1);
      if (tree.depth(node) < request.max_depth) {
        expand_into(node, request.max_width, expand);
        open(node, 0);
      }
    }
    tree.truncate(budget.best_nodes());
  }

  std::vector<Candidate> candidates_;  // [node + 1][kMaxWidth]
  std::array<int16_t, DraftTree::kCapacity + 1> counts_{};
  std::vector<Open> frontier_;  // a heap
};

}  // namespace sapwood
