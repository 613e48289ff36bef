// The verifiers of sampled trees by name: one call for whoever lets a person choose.
#pragma once

#include "base/status.h"
#include "tree/chance.h"
#include "verify/node_laws.h"
#include "verify/verifier.h"
#include "verify/workspace.h"

namespace sapwood {

// kRejection, kBlock or kTraversal, as rejection() (verify/rejection.h); kInternal for
// kTargetDraw, which draws from the target and needs no proposal (verify/target_draw.h).
Status verify_sampled(Verifier verifier, const SampledDraft& draft, NodeLaws& laws, Chance& chance,
                      const VerifyLimits& limits, VerifyWorkspace& workspace, Verdict& verdict);

}  // namespace sapwood
