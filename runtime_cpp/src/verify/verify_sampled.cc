#include "verify/verify_sampled.h"

#include "verify/block.h"
#include "verify/rejection.h"
#include "verify/traversal.h"

namespace sapwood {

Status verify_sampled(Verifier verifier, const SampledDraft& draft, NodeLaws& laws, Chance& chance,
                      const VerifyLimits& limits, VerifyWorkspace& workspace, Verdict& verdict) {
  switch (verifier) {
    case Verifier::kTargetDraw:
      break;
    case Verifier::kRejection:
      return rejection(draft, laws, chance, limits, workspace, verdict);
    case Verifier::kBlock:
      return block(draft, laws, chance, limits, workspace, verdict);
    case Verifier::kTraversal:
      return traversal(draft, laws, chance, limits, workspace, verdict);
  }
  return Status(Code::kInternal, "target_draw judges no proposals");
}

}  // namespace sapwood
