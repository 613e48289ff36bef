// Multi-round rejection over a sampled tree, from the root down (MATH.md, section 4).
//
// At a node the drawn children are judged in the order they were drawn: child x is accepted if
// log u < log p(x) - log q~(x); a rejection turns p into its residual and takes x out of q~. When
// all are rejected the step ends with a draw from the last residual, at a leaf with one from p.
// With one child a node this is the rule of Leviathan et al. and of Chen et al. (2023); with
// several, recursive rejection sampling without replacement (Jeon et al., 2024).
#pragma once

#include "base/status.h"
#include "tree/chance.h"
#include "verify/node_laws.h"
#include "verify/workspace.h"

namespace sapwood {

// The draft must fit (verify/verifier.h). Emits to `verdict` only; the caller pushes the emitted
// tokens to its sampler. Allocates nothing once the verdict has been reserved.
Status rejection(const SampledDraft& draft, NodeLaws& laws, Chance& chance,
                 const VerifyLimits& limits, VerifyWorkspace& workspace, Verdict& verdict);

}  // namespace sapwood
