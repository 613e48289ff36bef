// decoder_layer_in_place(hidden, rotary, slots, context_slots, path_slots, path_ranges, keys,
//   values, attention_norm, mlp_norm, qkv, output, gate_up, down, qkv_bias?, q_norm?, k_norm?,
//   attention_post_norm?, mlp_post_norm?, heads, kv_heads, head_dim, intermediate, norm_epsilon,
//   attention_scale, window, activation, qkv_format, output_format, gate_up_format, down_format)
//   -> hidden; the rows' K and V are written into `keys` and `values`
#include "operators/executorch/operator.h"
#include "operators/layer.h"

namespace sapwood::executorch {
namespace {

// Behind the inputs: sizes, then the matrices' formats in the matrices' order.
enum : size_t {
  kHeads = operators::kLayerInputs,
  kKvHeads,
  kHeadDim,
  kIntermediate,
  kNormEpsilon,
  kAttentionScale,
  kWindow,
  kActivation,
  kFormats,
  kOut = kFormats + operators::kLayerMatrices,
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
  return operators::check_layer(*shape);
}

Status read_weights(Arguments& call, const LayerShape& shape, LayerWeights* weights) {
  SAPWOOD_TRY(operators::read_layer_weights(
      shape,
      [&](size_t input, int length, const float** data) {
        return call.vector(input, length, data);
      },
      [&](size_t input, int outputs, int inputs, LinearWeights* matrix) {
        return call.packed(input, kFormats + (input - operators::kQkv), outputs, inputs, matrix);
      },
      weights));
  if (weights->attention_norm != nullptr && weights->mlp_norm != nullptr) return Status::okay();
  return Status(Code::kInvalidArgument, "a layer needs both of its norms");
}

Status compute(Arguments& call, operators::Resources& resources) {
  LayerShape shape;
  LayerWeights weights;
  Tensor hidden, rotary;
  operators::CacheCall cache;
  float* out = nullptr;
  SAPWOOD_TRY(read_shape(call, &shape));
  SAPWOOD_TRY(call.tensor(operators::kLayerHidden, ScalarType::Float, {kAny, kAny}, &hidden));
  const int rows = static_cast<int>(hidden.shape[0]);
  shape.hidden = static_cast<int>(hidden.shape[1]);
  SAPWOOD_TRY(read_weights(call, shape, &weights));
  SAPWOOD_TRY(call.tensor(operators::kLayerRotary, ScalarType::Float,
                          {rows, shape.attention.head_dim}, &rotary));
  SAPWOOD_TRY(call.cache(operators::kLayerCache, rows, shape.attention.kv_heads,
                         shape.attention.head_dim, resources, &cache));
  SAPWOOD_TRY(call.output(kOut, hidden.shape, &out));
  operators::run_layer(shape, weights, hidden, rotary, cache, out, resources);
  return Status::okay();
}

}  // namespace

const OperatorDefinition kDecoderLayer = {"sapwood::decoder_layer_in_place.out", kNames, compute};

}  // namespace sapwood::executorch
