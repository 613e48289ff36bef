#include "verify/block.h"

#include <algorithm>
#include <cmath>

namespace sapwood {

Status block(const SampledDraft& draft, NodeLaws& laws, Chance& chance, const VerifyLimits& limits,
             VerifyWorkspace& workspace, Verdict& verdict) {
  // Down the chain: the weights w and, for each position, the law's residual before any rejection.
  std::array<double, DraftTree::kCapacity + 1> log_w;
  std::array<int, DraftTree::kCapacity + 1> nodes;
  int length = 0;
  nodes[0] = DraftTree::kRoot;
  log_w[0] = 0;
  for (;;) {
    const int node = nodes[length];
    const Result<TokenLaw> law = laws.at(node);
    if (!law.ok()) return law.status();
    const Proposals::View proposal = draft.proposals.at(node);
    Residual& residual = workspace.residuals[static_cast<size_t>(length)];
    residual.start(law.value(), proposal);
    const int child = draft.tree.first_child(node);
    if (child == DraftTree::kNone) break;
    const int entry = proposal_entry(proposal, draft.tree.token(child));
    log_w[length + 1] = std::min(log_w[length] + residual.log_ratio(entry), 0.0);
    nodes[++length] = child;
  }
  // Each position is kept independently; the last one that is kept counts.
  int last = length;
  for (; last > 0; --last) {
    const Residual& residual = workspace.residuals[static_cast<size_t>(last)];
    const double log_h =
        last == length ? log_w[last] : residual.log_weight_after_rejection(std::exp(log_w[last]));
    if (chance.accept(log_h)) break;
  }
  Residual& residual = workspace.residuals[static_cast<size_t>(last)];
  if (last < length) {
    const int32_t rejected = draft.tree.token(nodes[last + 1]);
    residual.reject(proposal_entry(draft.proposals.at(nodes[last]), rejected),
                    std::exp(log_w[last]));
  }
  const Result<TokenLaw> law = laws.at(nodes[last]);
  if (!law.ok()) return law.status();
  conclude(draft.tree, nodes[last], residual.draw(law.value(), workspace.weights, chance), limits,
           verdict);
  return Status::okay();
}

}  // namespace sapwood
