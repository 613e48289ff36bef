// The operator DynamicTreePrune: what the pruning controller keeps of R rows of draft logits.
//
//   logits [R, V], entropy_threshold [1] -> kept_indices int32 [R, W], importance_weights float
//   [R, W], tree_mask uint8 [R, W]
//
// Row by row: the entropy rule with entropy_high = entropy_threshold (nats) gives the uncertainty,
// the prune ratio and the soft truncation of tree/controller.h. Column k is the row's k-th
// likeliest token. kept_indices holds its id, or -1 beyond what was kept; importance_weights q~ / q
// = 1 / Z, or 0; tree_mask 1, or 0. W = max_tree_width.
#pragma once

#include <cstdint>
#include <span>

#include "base/status.h"
#include "tree/candidates.h"
#include "tree/controller.h"

namespace sapwood {

// logits [rows][selector's vocabulary]; outputs [rows][options.max_tree_width].
// options.entropy_high is the threshold. An error names the row whose logits are no distribution.
Status dynamic_tree_prune(std::span<const float> logits, int rows, int vocabulary,
                          const ControllerOptions& options, CandidateSelector& selector,
                          int32_t* kept_indices, float* importance_weights, uint8_t* tree_mask);

}  // namespace sapwood
