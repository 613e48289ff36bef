// The operator DynamicTreePrune: what the pruning controller keeps of R rows of draft logits.
//
//   logits [R, V], entropy_threshold [1], uncertainty [R] (optional) -> kept_indices int32 [R, W],
//   importance_weights float [R, W], tree_mask uint8 [R, W]
//
// Row by row: the uncertainty gives the prune ratio and the soft truncation of tree/controller.h.
// Where a draft has a trained head, its graph computes the uncertainty from the hidden states
// (tree/uncertainty_head.h: MatMul, Relu, MatMul, Sigmoid) and passes it in; else the entropy rule
// with entropy_high = entropy_threshold (nats) gives it. Column k is the row's k-th
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
// options.entropy_high is the threshold; uncertainty [rows], or empty: the entropy rule. An error
// names the row whose logits are no distribution, or whose uncertainty is not in [0, 1].
Status dynamic_tree_prune(std::span<const float> logits, int rows, int vocabulary,
                          std::span<const float> uncertainty, const ControllerOptions& options,
                          CandidateSelector& selector, int32_t* kept_indices,
                          float* importance_weights, uint8_t* tree_mask);

}  // namespace sapwood
