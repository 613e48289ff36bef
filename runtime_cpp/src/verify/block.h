// Block verification of a sampled chain (Sun et al., "Block Verification Accelerates Speculative
// Decoding", 2024): all positions are judged together, so that a likely continuation can make up
// for an unlikely beginning.
//
// With w_0 = 1 and w_i = min(1, w_{i-1} p(x_i) / q~(x_i)), position i is kept with probability
// h_i = s_i / (s_i + 1 - w_i), s_i = sum over x of max(w_i p(x) - q~(x), 0) in the laws after x_i;
// h = w at the chain's end. The last position that is kept, with all before it, is accepted, and
// the token after it comes from normalise(max(w_i p - q~, 0)), or from p at the end. The accepted
// length is, in expectation, never below `rejection`'s, and no valid verifier of one chain has a
// larger one (same paper, theorem 2).
#pragma once

#include "base/status.h"
#include "tree/chance.h"
#include "verify/node_laws.h"
#include "verify/workspace.h"

namespace sapwood {

// As rejection(), for a tree in which no node has two children.
Status block(const SampledDraft& draft, NodeLaws& laws, Chance& chance, const VerifyLimits& limits,
             VerifyWorkspace& workspace, Verdict& verdict);

}  // namespace sapwood
