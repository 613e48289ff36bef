// Growing a tree by sampling: children drawn without replacement from the truncated, renormalised
// proposal, best first, for the verifiers that judge drawn nodes (verify/verifier.h).
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
#include "tree/draft_tree.h"
#include "tree/proposals.h"
#include "tree/pruning.h"

namespace sapwood {

struct SampledGrowth {
  int max_nodes = 0;
  int max_depth = 0;                       // the root's children have depth 1
  int max_children = Proposals::kMaxKept;  // of one node; 1 grows a chain
  const CostCurve* cost = nullptr;         // if given, growth stops where another node does not pay
  double overhead_ms = 0;                  // beside the verify pass, with `cost`
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
  // first. `tree` and `proposals` are empty on entry.
  template <typename Expand>
  Status grow(const SampledGrowth& growth, const Pruning& pruning, Expand&& expand, Chance& chance,
              DraftTree& tree, Proposals& proposals) {
    const int max_nodes = std::min(growth.max_nodes, DraftTree::kCapacity);
    if (max_nodes < 1 || growth.max_depth < 1 || growth.max_children < 1) return Status::okay();
    const CostCurve curve = growth.cost != nullptr ? *growth.cost : CostCurve::assumed();
    Budget budget(curve, growth.overhead_ms, max_nodes);
    frontier_.clear();
    SAPWOOD_TRY(open(DraftTree::kRoot, pruning, expand, tree, proposals));
    while (!frontier_.empty() && tree.size() < max_nodes) {
      std::pop_heap(frontier_.begin(), frontier_.end());
      Open best = frontier_.back();
      frontier_.pop_back();
      if (growth.cost != nullptr && !budget.wants(best.value)) break;
      const int entry = proposals.draw(best.node, chance);
      if (entry < 0) continue;
      const Proposals::View proposal = proposals.at(best.node);
      const int child = tree.add(best.node, proposal.tokens[entry], log_q_[best.node + 1][entry],
                                 proposals.log_q(best.node, entry), best.next);
      if (child == DraftTree::kNone) {
        return Status(Code::kInternal, "a drafter's candidates hold the same token twice");
      }
      budget.add(best.value);
      // One draw more at this node is reached when all so far were rejected.
      best.next *= 1.f - best.acceptance;
      best.value *= 1.f - best.acceptance;
      if (proposals.drawn(best.node) < std::min(growth.max_children, proposal.size())) {
        push(best);
      }
      if (tree.depth(child) < growth.max_depth && tree.size() < max_nodes) {
        SAPWOOD_TRY(open(child, pruning, expand, tree, proposals));
      }
    }
    return Status::okay();
  }

 private:
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
  Status open(int node, const Pruning& pruning, Expand& expand, const DraftTree& tree,
              Proposals& proposals) {
    const Result<Expansion> expansion = expand(node);
    if (!expansion.ok()) return expansion.status();
    const Candidates& candidates = expansion.value().candidates;
    std::array<int, Candidates::kMost> ranks;
    const int kept = candidates.size() == 0 ? 0 : pruning.select(tree, node, candidates, ranks);
    if (kept == 0) return Status::okay();
    std::array<int32_t, Candidates::kMost> tokens;
    for (int i = 0; i < kept; ++i) {
      tokens[i] = candidates.tokens[ranks[i]];
      log_q_[node + 1][i] = candidates.log_q[ranks[i]];
    }
    const size_t n = static_cast<size_t>(kept);
    if (!proposals.set(node, {tokens.data(), n}, {log_q_[node + 1].data(), n})) {
      return Status(Code::kInternal, "a drafter's candidates are no distribution");
    }
    const float acceptance = std::clamp(expansion.value().acceptance, 0.f, 1.f);
    push({tree.path_acceptance(node) * acceptance, acceptance, acceptance,
          static_cast<int16_t>(node)});
    return Status::okay();
  }

  std::vector<Open> frontier_;  // a heap
  std::vector<std::array<float, Candidates::kMost>> log_q_ =
      std::vector<std::array<float, Candidates::kMost>>(DraftTree::kCapacity + 1);  // by node + 1
};

}  // namespace sapwood
