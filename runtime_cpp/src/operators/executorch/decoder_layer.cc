// decoder_layer_in_place(hidden, rotary, slots, context_slots, path_slots, path_ranges, keys,
//   values, attention_norm, mlp_norm, qkv, output, gate_up, down, qkv_bias?, q_norm?, k_norm?,
//   attention_post_norm?, mlp_post_norm?, heads, kv_heads, head_dim, intermediate, norm_epsilon,
//   attention_scale, window, activation, qkv_format, output_format, gate_up_format, down_format)
//   -> hidden; the rows' K and V are written into `keys` and `values`
#include <algorithm>

#include "operators/executorch/operator.h"
#include "operators/packed_weights.h"

namespace sapwood::executorch {
namespace {

enum : size_t {
  kHidden,
  kRotary,
  kCache,
  kAttentionNorm = 8,
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
  kHeads,
  kKvHeads,
  kHeadDim,
  kIntermediate,
  kNormEpsilon,
  kAttentionScale,
  kWindow,
  kActivation,
  kQkvFormat,
  kOutputFormat,
  kGateUpFormat,
  kDownFormat,
  kOut,
};

constexpr const char* kNames[] = {"hidden",
                                  "rotary",
                                  "slots",
                                  "context_slots",
                                  "path_slots",
                                  "path_ranges",
                                  "keys",
                                  "values",
                                  "attention_norm",
                                  "mlp_norm",
                                  "qkv",
                                  "output",
                                  "gate_up",
                                  "down",
                                  "qkv_bias",
                                  "q_norm",
                                  "k_norm",
                                  "attention_post_norm",
                                  "mlp_post_norm",
                                  "heads",
                                  "kv_heads",
                                  "head_dim",
                                  "intermediate",
                                  "norm_epsilon",
                                  "attention_scale",
                                  "window",
                                  "activation",
                                  "qkv_format",
                                  "output_format",
                                  "gate_up_format",
                                  "down_format",
                                  "out"};

Status read_shape(Arguments& call, LayerShape* shape) {
  AttentionShape& attention = shape->attention;
  SAPWOOD_TRY(call.integer(kHeads, 1, &attention.heads));
  SAPWOOD_TRY(call.integer(kKvHeads, 1, &attention.kv_heads));
  SAPWOOD_TRY(call.integer(kHeadDim, 1, &attention.head_dim));
  SAPWOOD_TRY(call.real(kAttentionScale, &attention.scale));
  SAPWOOD_TRY(call.integer(kWindow, 0, &attention.window));
  SAPWOOD_TRY(call.integer(kIntermediate, 1, &shape->intermediate));
  SAPWOOD_TRY(call.real(kNormEpsilon, &shape->norm_epsilon));
  SAPWOOD_TRY(call.activation(kActivation, &shape->activation));
  SAPWOOD_TRY(operators::check_intermediate(shape->intermediate));
  return operators::check_heads(attention);
}

Status read_weights(Arguments& call, const LayerShape& shape, LayerWeights* weights) {
  const int hidden = shape.hidden;
  const int head_dim = shape.attention.head_dim;
  const int attended = shape.attention.heads * head_dim;
  const int qkv_width = attended + 2 * shape.attention.kv_heads * head_dim;
  SAPWOOD_TRY(call.vector(kAttentionNorm, hidden, &weights->attention_norm));
  SAPWOOD_TRY(call.vector(kMlpNorm, hidden, &weights->mlp_norm));
  SAPWOOD_TRY(call.vector(kQkvBias, qkv_width, &weights->qkv_bias));
  SAPWOOD_TRY(call.vector(kQNorm, head_dim, &weights->q_norm));
  SAPWOOD_TRY(call.vector(kKNorm, head_dim, &weights->k_norm));
  SAPWOOD_TRY(call.vector(kAttentionPostNorm, hidden, &weights->attention_post_norm));
  SAPWOOD_TRY(call.vector(kMlpPostNorm, hidden, &weights->mlp_post_norm));
  SAPWOOD_TRY(call.packed(kQkv, kQkvFormat, qkv_width, hidden, &weights->qkv));
  SAPWOOD_TRY(call.packed(kOutput, kOutputFormat, hidden, attended, &weights->output));
  SAPWOOD_TRY(
      call.packed(kGateUp, kGateUpFormat, 2 * shape.intermediate, hidden, &weights->gate_up));
  SAPWOOD_TRY(call.packed(kDown, kDownFormat, hidden, shape.intermediate, &weights->down));
  if (weights->attention_norm != nullptr && weights->mlp_norm != nullptr) return Status::okay();
  return Status(Code::kInvalidArgument, "a layer needs both of its norms");
}

Status compute(Arguments& call, operators::Resources& resources) {
  LayerShape shape;
  LayerWeights weights;
  Tensor hidden_in, rotary;
  operators::CacheCall cache;
  float* hidden = nullptr;
  SAPWOOD_TRY(read_shape(call, &shape));
  SAPWOOD_TRY(call.tensor(kHidden, ScalarType::Float, {kAny, kAny}, &hidden_in));
  const int rows = static_cast<int>(hidden_in.shape[0]);
  shape.hidden = static_cast<int>(hidden_in.shape[1]);
  SAPWOOD_TRY(read_weights(call, shape, &weights));
  SAPWOOD_TRY(call.tensor(kRotary, ScalarType::Float, {rows, shape.attention.head_dim}, &rotary));
  SAPWOOD_TRY(call.cache(kCache, rows, shape.attention.kv_heads, shape.attention.head_dim,
                         resources, &cache));
  SAPWOOD_TRY(call.output(kOut, hidden_in.shape, &hidden));
  if (rows == 0) return Status::okay();
  if (hidden != hidden_in.data) {
    std::copy_n(hidden_in.as<float>(), hidden_in.elements(), hidden);
  }
  LayerWorkspace& workspace = resources.layer_workspace(shape, rows, cache.visible_tokens);
  ThreadTeam& team = resources.team();
  team.run([&](int thread) {
    decoder_layer(shape, weights, cache.batch, rotary.as<float>(), cache.kv, hidden, workspace,
                  team, thread);
  });
  return Status::okay();
}

}  // namespace

const OperatorDefinition kDecoderLayer = {"sapwood::decoder_layer_in_place.out", kNames, compute};

}  // namespace sapwood::executorch
