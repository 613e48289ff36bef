// The verifiers by name, and which tree each may be given.
//
// A verifier is lossless for the trees it was made for and biased for others, silently. So the
// origin of a tree travels with it, and what does not fit is refused before anything is emitted.
#pragma once

#include <optional>
#include <string_view>

#include "base/status.h"
#include "tree/draft_tree.h"
#include "tree/proposals.h"

namespace sapwood {

enum class Verifier {
  kTargetDraw,  // draws from the target and looks whether the tree foresaw it
  kRejection,   // multi-round, root to leaf
  kBlock,       // chains, all positions together
  kTraversal,   // leaf to root
};

// How a tree's nodes were chosen.
enum class TreeOrigin {
  kRanked,    // by rank, deterministically, from draft-side data only
  kReranked,  // grown larger and cut by predicted acceptance (EAGLE-2), sampled or not
  kSampled,   // every child drawn without replacement from q~, none dropped since
};

// Of the verifiers for sampled trees the one with the largest expected accepted length, on chains
// and on trees (`sapwood verify` shows both against the optimum).
inline constexpr Verifier kSampledTreeVerifier = Verifier::kTraversal;

std::optional<Verifier> parse_verifier(std::string_view name);  // "target_draw", "rejection", ...
std::string_view verifier_name(Verifier verifier);

// kInvalidArgument, in one line, when this verifier would bias the text with such a tree:
//   rejection, block, traversal  want a kSampled tree that carries q~ for every node with children,
//                                every drawn child still there and with q~ above 0;
//   block                        wants a chain;
//   target_draw                  takes any tree grown without looking at the target's draws.
// `proposals` may be null where the drafter has none.
Status check_fit(Verifier verifier, TreeOrigin origin, const DraftTree& tree,
                 const Proposals* proposals);

}  // namespace sapwood
