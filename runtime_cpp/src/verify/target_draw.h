// Verification of a deterministic tree by drawing from the target itself (MATH.md, section 4).
//
// At the current node y ~ p is drawn, exactly as plain decoding would draw it. If y is a child we
// descend to it, else y is emitted and the step ends. What comes out is the target's own draw at
// every position, so the law is untouched by whatever the tree held; the tree must only have been
// made without looking at the draws.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "base/status.h"
#include "tree/draft_tree.h"
#include "verify/sampling.h"

namespace sapwood {

// What a verifier decided.
struct Verdict {
  std::vector<int> accepted;     // nodes, from the root's child down
  std::vector<int32_t> emitted;  // their tokens and, last, one that is no node (unless cut)

  void reserve(int tokens) { accepted.reserve(tokens), emitted.reserve(tokens); }
};

struct VerifyLimits {
  int max_tokens = 0;                         // emit at most this many, at least 1
  std::span<const int32_t> stop_tokens = {};  // emit nothing after one of these
};

// logits [1 + tree.size()][vocabulary]: row 0 is the root's, row 1 + v node v's. `index` is the
// output position of the first emitted token. Pushes what it emits to the sampler's history. Does
// not allocate once `verdict` has been reserved.
Status target_draw(const DraftTree& tree, std::span<const float> logits, Sampler& sampler,
                   uint64_t index, const VerifyLimits& limits, Verdict& verdict);

}  // namespace sapwood
