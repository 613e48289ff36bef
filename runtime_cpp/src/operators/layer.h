// The operator of one decoder layer, as both hosts' operators read and run it.
#pragma once

#include <cstddef>

#include "base/status.h"
#include "kernels/decoder_layer.h"
#include "operators/cache_arguments.h"
#include "operators/packed_weights.h"
#include "operators/resources.h"
#include "operators/shapes.h"

namespace sapwood::operators {

// Its inputs, in both hosts' order. The six of the cache begin at kLayerCache; those from
// kQkvBias on may be left out.
enum LayerInput : size_t {
  kLayerHidden,
  kLayerRotary,
  kLayerCache,
  kAttentionNorm = kLayerCache + 6,
  kMlpNorm,
  kQkv,
  kOutput,
  kGateUp,
  kDown,
  kQkvBias,
  kQNorm,
  kKNorm,
  kAttentionPostNorm,
  kMlpPostNorm,
  kLayerInputs,
};

inline constexpr size_t kLayerMatrices = 4;  // from kQkv, each with a format of its own

// What its shape must be beside what the kernels ask of the heads.
inline Status check_layer(const LayerShape& shape) {
  SAPWOOD_TRY(check_intermediate(shape.intermediate));
  return check_heads(shape.attention);
}

// vector(input, length, &pointer) and packed(input, outputs, inputs, &matrix) read one weight each
// and say what is wrong with it.
template <typename Vector, typename Packed>
Status read_layer_weights(const LayerShape& shape, Vector vector, Packed packed,
                          LayerWeights* weights) {
  const int hidden = shape.hidden;
  const int head_dim = shape.attention.head_dim;
  const int attended = shape.attention.heads * head_dim;
  const int qkv_width = attended + 2 * shape.attention.kv_heads * head_dim;
  SAPWOOD_TRY(vector(kAttentionNorm, hidden, &weights->attention_norm));
  SAPWOOD_TRY(vector(kMlpNorm, hidden, &weights->mlp_norm));
  SAPWOOD_TRY(vector(kQkvBias, qkv_width, &weights->qkv_bias));
  SAPWOOD_TRY(vector(kQNorm, head_dim, &weights->q_norm));
  SAPWOOD_TRY(vector(kKNorm, head_dim, &weights->k_norm));
  SAPWOOD_TRY(vector(kAttentionPostNorm, hidden, &weights->attention_post_norm));
  SAPWOOD_TRY(vector(kMlpPostNorm, hidden, &weights->mlp_post_norm));
  SAPWOOD_TRY(packed(kQkv, qkv_width, hidden, &weights->qkv));
  SAPWOOD_TRY(packed(kOutput, hidden, attended, &weights->output));
  SAPWOOD_TRY(packed(kGateUp, 2 * shape.intermediate, hidden, &weights->gate_up));
  return packed(kDown, hidden, shape.intermediate, &weights->down);
}

// hidden_out[R, hidden] of hidden[R, hidden], which may be the same memory, and rotary[R,
// head_dim]; writes the rows' keys and values to their slots.
void run_layer(const LayerShape& shape, const LayerWeights& weights, const Tensor& hidden,
               const Tensor& rotary, const CacheCall& cache, float* hidden_out,
               Resources& resources);

}  // namespace sapwood::operators
