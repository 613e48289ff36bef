#include "verify/rejection.h"

namespace sapwood {

Status rejection(const SampledDraft& draft, NodeLaws& laws, Chance& chance,
                 const VerifyLimits& limits, VerifyWorkspace& workspace, Verdict& verdict) {
  Residual& residual = workspace.residuals[0];
  int node = DraftTree::kRoot;
  for (;;) {
    const Result<TokenLaw> law = laws.at(node);
    if (!law.ok()) return law.status();
    const Proposals::View proposal = draft.proposals.at(node);
    residual.start(law.value(), proposal);
    int accepted = DraftTree::kNone;
    for (int child = draft.tree.first_child(node); child != DraftTree::kNone;
         child = draft.tree.next_sibling(child)) {
      const int entry = proposal_entry(proposal, draft.tree.token(child));
      if (chance.accept(residual.log_ratio(entry))) {
        accepted = child;
        break;
      }
      residual.reject(entry, 1.0);
    }
    if (accepted == DraftTree::kNone) {
      conclude(draft.tree, node, residual.draw(law.value(), workspace.weights, chance), limits,
               verdict);
      return Status::okay();
    }
    node = accepted;
  }
}

}  // namespace sapwood
