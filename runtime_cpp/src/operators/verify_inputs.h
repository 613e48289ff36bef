// What both hosts' BlockSparseVerify is given, as the verifier takes it.
#pragma once

#include "base/status.h"
#include "operators/shapes.h"
#include "verify/block_sparse_verify.h"

namespace sapwood::operators {

// target_logits[R, V], draft_logits[R, V], tree_mask[R, W], importance_weights[R, W], whose shapes
// have been compared with each other. An error without the root's row.
Status open_tree(const Tensor& target, const Tensor& draft, const Tensor& mask,
                 const Tensor& weights, BlockSparseTree* tree);

// draw[2]: seed and position of the first token.
void set_draw(const Tensor& draw, BlockSparseOptions* options);

}  // namespace sapwood::operators
