// Verification of a deterministic tree by drawing from the target itself (MATH.md, section 4).
//
// At the current node y ~ p is drawn, exactly as plain decoding would draw it. If y is a child we
// descend to it, else y is emitted and the step ends. What comes out is the target's own draw at
// every position, a function of the seed and the target's law alone: the same text with whatever
// tree, even one that was made knowing the seed's draws (verify/race.h).
#pragma once

#include <algorithm>
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

// The walk itself: choose(node, position) -> Result<int32_t> draws from the target's law at `node`
// (kRoot first) for the position-th emitted token. Everything that verifies this way comes through
// here, the enumerator of verify/enumerate.h included.
template <typename Choose>
Status target_draw_walk(const DraftTree& tree, const VerifyLimits& limits, Verdict& verdict,
                        Choose&& choose) {
  verdict.accepted.clear();
  verdict.emitted.clear();
  int node = DraftTree::kRoot;
  for (;;) {
    const Result<int32_t> drawn = choose(node, verdict.emitted.size());
    if (!drawn.ok()) return drawn.status();
    const int32_t token = drawn.value();
    verdict.emitted.push_back(token);
    node = tree.find_child(node, token);
    if (node != DraftTree::kNone) verdict.accepted.push_back(node);
    const bool ended = std::find(limits.stop_tokens.begin(), limits.stop_tokens.end(), token) !=
                       limits.stop_tokens.end();
    if (node == DraftTree::kNone || ended ||
        static_cast<int>(verdict.emitted.size()) == limits.max_tokens) {
      return Status::okay();
    }
  }
}

// logits [1 + tree.size()][vocabulary]: row 0 is the root's, row 1 + v node v's. `index` is the
// output position of the first emitted token. Pushes what it emits to the sampler's history. Does
// not allocate once `verdict` has been reserved.
Status target_draw(const DraftTree& tree, std::span<const float> logits, Sampler& sampler,
                   uint64_t index, const VerifyLimits& limits, Verdict& verdict);

}  // namespace sapwood
