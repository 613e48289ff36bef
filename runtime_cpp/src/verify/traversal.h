// Traversal verification of a sampled tree, from the leaves to the root (Weng et al., "Traversal
// Verification for Speculative Tree Decoding", 2025): what block verification does to a chain, done
// to every branch in the order the branches were drawn.
//
// A node reached with weight w (1 at the root) judges its drawn children first. Child x gets the
// weight min(1, w r(x) / q(x)), r and q being what earlier siblings left of p and q~; if nothing
// at or below x is accepted, r and q lose x as in verify/residual.h and w becomes
// s / (s + 1 - w) with s = sum of max(w r - q, 0). When no child is left, the node itself is
// accepted with probability w, followed by a draw from r. A tree of depth one gives `rejection`,
// a chain gives `block`.
#pragma once

#include "base/status.h"
#include "tree/chance.h"
#include "verify/node_laws.h"
#include "verify/workspace.h"

namespace sapwood {

// As rejection().
Status traversal(const SampledDraft& draft, NodeLaws& laws, Chance& chance,
                 const VerifyLimits& limits, VerifyWorkspace& workspace, Verdict& verdict);

}  // namespace sapwood
