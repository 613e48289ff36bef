#include "model/spec.h"

#include <algorithm>

#include "kernels/attention_limits.h"
#include "kernels/linear.h"
#include "model/tensors.h"

namespace sapwood {
namespace {

Status multiple_of(const char* field, int value, int of) {
  if (value % of == 0) return Status::okay();
  return Status(Code::kUnsupported, std::string(field) + ": " + std::to_string(value) +
                                        " is not a multiple of " + std::to_string(of));
}

}  // namespace

LayerShape ModelSpec::layer_shape(int layer) const {
  LayerShape shape;
  shape.hidden = hidden_size;
  shape.intermediate = intermediate_size;
  shape.attention.heads = heads;
  shape.attention.kv_heads = kv_heads;
  shape.attention.head_dim = head_dim;
  shape.attention.scale = attention_scale;
  shape.attention.window = layer_is_sliding[static_cast<size_t>(layer)] ? sliding_window : 0;
  shape.norm_epsilon = norm_epsilon;
  shape.activation = activation;
  return shape;
}

Status check_spec(const ModelSpec& spec) {
  if (spec.heads % spec.kv_heads != 0) {
    return Status(Code::kCorrupt, "heads: " + std::to_string(spec.heads) +
                                      " is not a multiple of kv_heads (" +
                                      std::to_string(spec.kv_heads) + ")");
  }
  if (spec.heads / spec.kv_heads > kMaxGroup) {
    return Status(Code::kUnsupported, "heads: " + std::to_string(spec.heads / spec.kv_heads) +
                                          " query heads share a kv head, at most " +
                                          std::to_string(kMaxGroup) + " are supported");
  }
  SAPWOOD_TRY(multiple_of("head_dim", spec.head_dim, 16));
  SAPWOOD_TRY(multiple_of("hidden_size", spec.hidden_size, kActivationGroup));
  SAPWOOD_TRY(multiple_of("intermediate_size", spec.intermediate_size, kActivationGroup));
  SAPWOOD_TRY(multiple_of("heads * head_dim", spec.heads * spec.head_dim, kActivationGroup));
  if (spec.layer_is_sliding.size() != static_cast<size_t>(spec.layers)) {
    return Status(Code::kCorrupt, "layer_is_sliding: has " +
                                      std::to_string(spec.layer_is_sliding.size()) +
                                      " entries for " + std::to_string(spec.layers) + " layers");
  }
  const bool slides = std::find(spec.layer_is_sliding.begin(), spec.layer_is_sliding.end(), true) !=
                      spec.layer_is_sliding.end();
  if (slides && spec.sliding_window == 0) {
    return Status(Code::kCorrupt, "sliding_window: is 0, but layer_is_sliding has sliding layers");
  }
  return Status::okay();
}

std::string layer_tensor(int layer, const std::string& part) {
  return "layers." + std::to_string(layer) + "." + part;
}

void add_layer_tensors(const ModelSpec& spec, const std::string& prefix,
                       std::vector<TensorShape>* tensors) {
  const auto vector = [&](const char* part, int length) {
    tensors->push_back({prefix + part, false, length, 0});
  };
  const auto matrix = [&](const char* part, int outputs, int inputs) {
    tensors->push_back({prefix + part, true, outputs, inputs});
  };
  const int hidden = spec.hidden_size;
  const int qkv_outputs = (spec.heads + 2 * spec.kv_heads) * spec.head_dim;
  vector("attention_norm", hidden);
  matrix("qkv", qkv_outputs, hidden);
  if (spec.qkv_bias) vector("qkv_bias", qkv_outputs);
  if (spec.qk_norm) vector("q_norm", spec.head_dim);
  if (spec.qk_norm) vector("k_norm", spec.head_dim);
  matrix("output", hidden, spec.heads * spec.head_dim);
  if (spec.post_norms) vector("attention_post_norm", hidden);
  vector("mlp_norm", hidden);
  matrix("gate_up", 2 * spec.intermediate_size, hidden);
  matrix("down", hidden, spec.intermediate_size);
  if (spec.post_norms) vector("mlp_post_norm", hidden);
}

std::vector<TensorShape> tensors_of(const ModelSpec& spec) {
  std::vector<TensorShape> tensors;
  const auto vector = [&](std::string name, int length) {
    tensors.push_back({std::move(name), false, length, 0});
  };
  const auto matrix = [&](std::string name, int outputs, int inputs) {
    tensors.push_back({std::move(name), true, outputs, inputs});
  };
  const int hidden = spec.hidden_size;
  bool slides = false;

  matrix("embedding", spec.vocabulary_size, hidden);
  for (int layer = 0; layer < spec.layers; ++layer) {
    slides = slides || spec.layer_is_sliding[static_cast<size_t>(layer)];
    add_layer_tensors(spec, layer_tensor(layer, ""), &tensors);
  }
  vector("final_norm", hidden);
  if (!spec.tied_head) matrix("head", spec.vocabulary_size, hidden);
  vector("rope.global", spec.head_dim / 2);
  if (slides) vector("rope.local", spec.head_dim / 2);
  return tensors;
}

}  // namespace sapwood
