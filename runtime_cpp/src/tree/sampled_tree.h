// Growing a tree by sampling: children drawn without replacement from the truncated, renormalised
// proposal, for the verifiers that judge drawn nodes (verify/verifier.h).
//
// What is decided before a draw may look at everything drawn so far (which node draws next, whether
// another child is worth it, whether a node is expanded at all). What was drawn stays.
#pragma once

#include <algorithm>
#include <array>
#include <span>
#include <vector>

#include "base/status.h"
#include "tree/budget.h"
#include "tree/candidates.h"
#include "tree/chance.h"
#include "tree/controller.h"
#include "tree/draft_tree.h"
#include "tree/proposals.h"
#include "tree/pruning.h"
#include "tree/tree_shape.h"

namespace sapwood {

struct SampledGrowth {
  int max_nodes = 0;
  int max_depth = 0;                       // the root's children have depth 1
  int max_children = Proposals::kMaxKept;  // of one node; 1 grows a chain
  const CostCurve* cost = nullptr;         // if given, growth stops where another node does not pay
  double overhead_ms = 0;                  // beside the verify pass, with `cost`
  const TreeShape* shape = nullptr;  // if given, not best first: each node draws as many children
                                     // as the shape's has
  bool length_by_entropy = false;    // no deeper than draft_length() of the first entropy
};

// A node's candidates, and the predicted probability that one draw from them is accepted: what a
// drafter answers for a node.
struct Expansion {
  Candidates candidates;
  float acceptance = 0;  // in [0, 1], for instance 1 - uncertainty
};

class SampledTreeGrower {
 public:
  SampledTreeGrower() { frontier_.reserve(DraftTree::kCapacity + 1); }

  // expand(node) -> Result<Expansion>: called at most once for a node, after it was added, the root
  // first. `pruning` may be null: everything stays. `tree` and `proposals` are empty on entry.
  template <typename Expand>
  Status grow(const SampledGrowth& growth, const Pruning* pruning, Expand&& expand, Chance& chance,
              DraftTree& tree, Proposals& proposals) {
    SampledGrowth limits = growth;
    limits.max_nodes = std::min(growth.max_nodes, DraftTree::kCapacity);
    if (limits.max_nodes < 1 || growth.max_depth < 1 || growth.max_children < 1) {
      return Status::okay();
    }
    const Result<Opening> root = open(DraftTree::kRoot, pruning, expand, tree, proposals);
    if (!root.ok()) return root.status();
    if (growth.length_by_entropy) {
      limits.max_depth = std::min(growth.max_depth, draft_length(root->entropy));
    }
    return growth.shape != nullptr
               ? grow_shape(limits, pruning, root->acceptance, expand, chance, tree, proposals)
               : grow_best_first(limits, pruning, root->acceptance, expand, chance, tree,
                                 proposals);
  }

 private:
  struct Opening {
    float acceptance;  // of one draw
    float entropy;
  };

  // A node that may draw another child, and what that child is expected to bring.
  struct Open {
    float value;       // predicted probability that the next draw is reached and accepted
    float next;        // the same, given that the node is
    float acceptance;  // of one draw at this node
    int16_t node;
    bool operator<(const Open& other) const {
      if (value != other.value) return value < other.value;
      return node > other.node;  // the older node first, so that trees agree between machines
    }
  };

  void push(const Open& open) {
    frontier_.push_back(open);
    std::push_heap(frontier_.begin(), frontier_.end());
  }

  template <typename Expand>
  Status grow_best_first(const SampledGrowth& growth, const Pruning* pruning, float root_acceptance,
                         Expand& expand, Chance& chance, DraftTree& tree, Proposals& proposals) {
    const CostCurve curve = growth.cost != nullptr ? *growth.cost : CostCurve::assumed();
    Budget budget(curve, growth.overhead_ms, growth.max_nodes);
    frontier_.clear();
    const auto reopen = [&](int node, float acceptance) {
      if (proposals.at(node).size() == 0) return;
      push({tree.path_acceptance(node) * acceptance, acceptance, acceptance,
            static_cast<int16_t>(node)});
    };
    reopen(DraftTree::kRoot, root_acceptance);
    while (!frontier_.empty() && tree.size() < growth.max_nodes) {
      std::pop_heap(frontier_.begin(), frontier_.end());
      Open best = frontier_.back();
      frontier_.pop_back();
      if (growth.cost != nullptr && !budget.wants(best.value)) break;
      const Result<int> child = draw(best.node, best.next, chance, tree, proposals);
      if (!child.ok()) return child.status();
      if (child.value() == DraftTree::kNone) continue;
      budget.add(best.value);
      // One draw more at this node is reached when all so far were rejected.
      best.next *= 1.f - best.acceptance;
      best.value *= 1.f - best.acceptance;
      if (proposals.drawn(best.node) <
          std::min(growth.max_children, proposals.at(best.node).size())) {
        push(best);
      }
      if (tree.depth(child.value()) < growth.max_depth && tree.size() < growth.max_nodes) {
        const Result<Opening> opened = open(child.value(), pruning, expand, tree, proposals);
        if (!opened.ok()) return opened.status();
        reopen(child.value(), opened->acceptance);
      }
    }
    return Status::okay();
  }

  template <typename Expand>
  Status grow_shape(const SampledGrowth& growth, const Pruning* pruning, float root_acceptance,
                    Expand& expand, Chance& chance, DraftTree& tree, Proposals& proposals) {
    // shape node -> tree node; where nothing is left to draw, a gap with all below it.
    std::array<int16_t, DraftTree::kCapacity> placed;
    // By node + 1: of one draw, and that the next one is reached and accepted; below 0: not opened.
    std::array<float, DraftTree::kCapacity + 1> acceptance;
    std::array<float, DraftTree::kCapacity + 1> next;
    acceptance.fill(-1.f);
    acceptance[0] = next[0] = root_acceptance;
    const std::span<const TreeShape::Node> nodes = growth.shape->nodes();
    for (size_t i = 0; i < nodes.size() && tree.size() < growth.max_nodes; ++i) {
      placed[i] = DraftTree::kNone;
      const int parent =
          nodes[i].parent == DraftTree::kRoot ? DraftTree::kRoot : placed[nodes[i].parent];
      if (parent == DraftTree::kNone || tree.depth(parent) >= growth.max_depth) continue;
      if (acceptance[parent + 1] < 0.f) {
        const Result<Opening> opened = open(parent, pruning, expand, tree, proposals);
        if (!opened.ok()) return opened.status();
        acceptance[parent + 1] = next[parent + 1] = opened->acceptance;
      }
      const Result<int> child = draw(parent, next[parent + 1], chance, tree, proposals);
      if (!child.ok()) return child.status();
      placed[i] = static_cast<int16_t>(child.value());
      next[parent + 1] *= 1.f - acceptance[parent + 1];
    }
    return Status::okay();
  }

  // One more child of `node`, or kNone when nothing is left to draw.
  Result<int> draw(int node, float acceptance, Chance& chance, DraftTree& tree,
                   Proposals& proposals) {
    const int entry = proposals.draw(node, chance);
    if (entry < 0) return DraftTree::kNone;
    const int child = tree.add(node, proposals.at(node).tokens[entry], log_q_[node + 1][entry],
                               proposals.log_q(node, entry), acceptance);
    if (child == DraftTree::kNone) {
      return Status(Code::kInternal, "a drafter's candidates hold the same token twice");
    }
    return child;
  }

  template <typename Expand>
  Result<Opening> open(int node, const Pruning* pruning, Expand& expand, const DraftTree& tree,
                       Proposals& proposals) {
    const Result<Expansion> expansion = expand(node);
    if (!expansion.ok()) return expansion.status();
    const Candidates& candidates = expansion->candidates;
    const Opening opening{std::clamp(expansion->acceptance, 0.f, 1.f), candidates.entropy};
    std::array<int, Candidates::kMost> ranks;
    int kept = candidates.size();
    for (int i = 0; i < kept; ++i) ranks[i] = i;
    if (kept > 0 && pruning != nullptr) kept = pruning->select(tree, node, candidates, ranks);
    if (kept == 0) return opening;
    std::array<int32_t, Candidates::kMost> tokens;
    for (int i = 0; i < kept; ++i) {
      tokens[i] = candidates.tokens[ranks[i]];
      log_q_[node + 1][i] = candidates.log_q[ranks[i]];
    }
    const size_t n = static_cast<size_t>(kept);
    if (!proposals.set(node, {tokens.data(), n}, {log_q_[node + 1].data(), n})) {
      return Status(Code::kInternal, "a drafter's candidates are no distribution");
    }
    return opening;
  }

  std::vector<Open> frontier_;  // a heap
  std::vector<std::array<float, Candidates::kMost>> log_q_ =
      std::vector<std::array<float, Candidates::kMost>>(DraftTree::kCapacity + 1);  // by node + 1
};

}  // namespace sapwood
