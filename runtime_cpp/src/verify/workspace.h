// What the verifiers of sampled trees need beside their inputs; made once.
#pragma once

#include <array>
#include <span>
#include <vector>

#include "tree/draft_tree.h"
#include "tree/proposals.h"
#include "verify/residual.h"
#include "verify/target_draw.h"

namespace sapwood {

struct VerifyWorkspace {
  explicit VerifyWorkspace(int vocabulary_size)
      : weights(static_cast<size_t>(vocabulary_size)), residuals(DraftTree::kCapacity + 1) {}

  std::vector<double> weights;      // [vocabulary], of a draw
  std::vector<Residual> residuals;  // by depth
};

// A tree whose nodes were drawn, and the laws they were drawn from.
struct SampledDraft {
  const DraftTree& tree;
  const Proposals& proposals;
};

// Entry of node `child` in its parent's proposal, -1 if it is not there.
int proposal_entry(const Proposals::View& proposal, int32_t token);

// The path to `node` was accepted and `last` comes after it: fills the verdict, cut by the limits.
void conclude(const DraftTree& tree, int node, int32_t last, const VerifyLimits& limits,
              Verdict& verdict);

}  // namespace sapwood
