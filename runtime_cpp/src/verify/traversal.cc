#include "verify/traversal.h"

#include <algorithm>
#include <array>
#include <cmath>

namespace sapwood {
namespace {

// A node whose children are being judged.
struct Level {
  int node;
  int child;     // the one being judged; kNone: all were rejected
  double log_w;  // the node's weight
};

}  // namespace

Status traversal(const SampledDraft& draft, NodeLaws& laws, Chance& chance,
                 const VerifyLimits& limits, VerifyWorkspace& workspace, Verdict& verdict) {
  const DraftTree& tree = draft.tree;
  std::array<Level, DraftTree::kCapacity + 1> levels;
  int depth = -1;
  const auto enter = [&](int node, double log_w) -> Status {
    const Result<TokenLaw> law = laws.at(node);
    if (!law.ok()) return law.status();
    levels[++depth] = {node, tree.first_child(node), log_w};
    workspace.residuals[static_cast<size_t>(depth)].start(law.value(), draft.proposals.at(node));
    return Status::okay();
  };
  SAPWOOD_TRY(enter(DraftTree::kRoot, 0.0));
  for (;;) {
    Level& level = levels[depth];
    Residual& residual = workspace.residuals[static_cast<size_t>(depth)];
    if (level.child != DraftTree::kNone) {
      const int entry = proposal_entry(draft.proposals.at(level.node), tree.token(level.child));
      SAPWOOD_TRY(enter(level.child, std::min(level.log_w + residual.log_ratio(entry), 0.0)));
      continue;
    }
    // The root is what plain decoding emits after: there is nothing to reject it for.
    if (depth == 0 || chance.accept(level.log_w)) {
      const Result<TokenLaw> law = laws.at(level.node);
      if (!law.ok()) return law.status();
      conclude(tree, level.node, residual.draw(law.value(), workspace.weights, chance), limits,
               verdict);
      return Status::okay();
    }
    // Nothing at or below this node: its parent loses it and goes on to the next child.
    Level& parent = levels[--depth];
    Residual& left = workspace.residuals[static_cast<size_t>(depth)];
    const double w = std::exp(parent.log_w);
    const int entry = proposal_entry(draft.proposals.at(parent.node), tree.token(parent.child));
    parent.log_w = depth == 0 ? 0.0 : left.log_weight_after_rejection(w);
    left.reject(entry, w);
    parent.child = tree.next_sibling(parent.child);
  }
}

}  // namespace sapwood
