#include <algorithm>
#include <iterator>
#include <limits>
#include <string>
#include <utility>
#include <vector>

#include "model/manifest_parts.h"
#include "model/tensors.h"

namespace sapwood {
namespace {

// Far above any real model, and low enough that no product of two below overflows an int.
constexpr int kMaxVocabulary = 1 << 23;
constexpr int kMaxSize = 1 << 19;
constexpr int kMaxLayers = 1 << 10;
constexpr int kMaxHeads = 1 << 10;
constexpr int kMaxHeadDim = 1 << 10;

constexpr const char* kFamilies[] = {"llama", "qwen2", "qwen3", "gemma3"};

Status read_spec(const JsonObject& target, ModelSpec* spec) {
  JsonObject object;
  std::string activation;
  SAPWOOD_TRY(target.read("spec", &object));
  SAPWOOD_TRY(object.read("family", &spec->family));
  if (std::find(std::begin(kFamilies), std::end(kFamilies), spec->family) == std::end(kFamilies)) {
    return object.error(
        "family",
        printable(spec->family) +
            " is not a family this build knows (llama, qwen2, qwen3, gemma3): update Sapwood",
        Code::kUnsupported);
  }
  SAPWOOD_TRY(object.read("vocabulary_size", 1, kMaxVocabulary, &spec->vocabulary_size));
  SAPWOOD_TRY(object.read("hidden_size", 1, kMaxSize, &spec->hidden_size));
  SAPWOOD_TRY(object.read("intermediate_size", 1, kMaxSize, &spec->intermediate_size));
  SAPWOOD_TRY(object.read("layers", 1, kMaxLayers, &spec->layers));
  SAPWOOD_TRY(object.read("heads", 1, kMaxHeads, &spec->heads));
  SAPWOOD_TRY(object.read("kv_heads", 1, kMaxHeads, &spec->kv_heads));
  SAPWOOD_TRY(object.read("head_dim", 1, kMaxHeadDim, &spec->head_dim));
  SAPWOOD_TRY(object.read("context_length", 1, kMaxPositions, &spec->context_length));
  SAPWOOD_TRY(object.read("norm_epsilon", 1e-12, 0.1, &spec->norm_epsilon));
  SAPWOOD_TRY(object.read("attention_scale", 1e-6, 1e3, &spec->attention_scale));
  SAPWOOD_TRY(object.read("embedding_scale", 1e-6, 1e6, &spec->embedding_scale));
  SAPWOOD_TRY(object.read("activation", &activation));
  if (activation != "silu" && activation != "gelu_tanh") {
    return object.error("activation", printable(activation) + " is not supported (silu, gelu_tanh)",
                        Code::kUnsupported);
  }
  spec->activation = activation == "silu" ? Activation::kSilu : Activation::kGeluTanh;
  SAPWOOD_TRY(object.read("qkv_bias", &spec->qkv_bias));
  SAPWOOD_TRY(object.read("qk_norm", &spec->qk_norm));
  SAPWOOD_TRY(object.read("post_norms", &spec->post_norms));
  SAPWOOD_TRY(object.read("tied_head", &spec->tied_head));
  SAPWOOD_TRY(object.read("sliding_window", 0, kMaxPositions, &spec->sliding_window));
  SAPWOOD_TRY(object.read("layer_is_sliding", &spec->layer_is_sliding));
  const Status rules = check_spec(*spec);
  return rules.ok() ? rules : object.error(rules);
}

std::string shape_text(bool matrix, int outputs, int inputs) {
  return matrix ? "[" + std::to_string(outputs) + ", " + std::to_string(inputs) + "]"
                : "[" + std::to_string(outputs) + "]";
}

Status read_tensor(const JsonObject& tensors, const TensorShape& wanted, uint64_t weights_bytes,
                   TensorEntry* out) {
  JsonObject object;
  std::string format;
  std::vector<int> shape;
  SAPWOOD_TRY(tensors.read(wanted.name, &object));
  SAPWOOD_TRY(object.read("format", &format));
  out->packed = parse_linear_format(format);
  if (!out->packed.has_value() && format != "float32") {
    return object.error("format",
                        printable(format) + " is not a format this build knows: update Sapwood",
                        Code::kUnsupported);
  }
  if (wanted.matrix != out->packed.has_value()) {
    return object.error("format", "expected " +
                                      std::string(wanted.matrix ? "a packed format" : "float32") +
                                      ", found " + printable(format));
  }
  std::vector<int> wanted_shape = {wanted.outputs};
  if (wanted.matrix) wanted_shape.push_back(wanted.inputs);
  SAPWOOD_TRY(object.read("shape", 0, std::numeric_limits<int>::max(), &shape));
  if (shape != wanted_shape) {
    return object.error("shape", "does not fit the model's sizes, which ask for " +
                                     shape_text(wanted.matrix, wanted.outputs, wanted.inputs));
  }
  out->outputs = wanted.outputs;
  out->inputs = wanted.inputs;
  uint64_t bytes = static_cast<uint64_t>(wanted.outputs) * sizeof(float);
  if (wanted.matrix) {
    const LinearFormat& packed = *out->packed;
    if (wanted.inputs % packed.group != 0) {
      return object.error("format", printable(format) + " needs a multiple of " +
                                        std::to_string(packed.group) + " inputs, there are " +
                                        std::to_string(wanted.inputs));
    }
    const uint64_t panels = (static_cast<uint64_t>(wanted.outputs) + kPanel - 1) / kPanel;
    bytes = panels * static_cast<uint64_t>(wanted.inputs / packed.group) * packed.group_bytes();
  }
  SAPWOOD_TRY(object.read("offset", 0, kMaxFileBytes, &out->offset));
  SAPWOOD_TRY(object.read("bytes", 0, kMaxFileBytes, &out->bytes));
  if (out->bytes != bytes) {
    return object.error("bytes", "is " + std::to_string(out->bytes) +
                                     ", but a tensor of this shape " + "and format has " +
                                     std::to_string(bytes));
  }
  if (out->offset % kTensorAlignment != 0) {
    return object.error("offset", std::to_string(out->offset) + " is not a multiple of " +
                                      std::to_string(kTensorAlignment));
  }
  if (out->offset > weights_bytes || out->bytes > weights_bytes - out->offset) {
    return object.error("offset", "the tensor ends at byte " +
                                      std::to_string(out->offset + out->bytes) +
                                      ", behind the end of the weights file (" +
                                      std::to_string(weights_bytes) + " bytes)");
  }
  return Status::okay();
}

Status check_overlaps(const JsonObject& tensors, const Manifest& manifest) {
  std::vector<std::pair<const TensorEntry*, std::string_view>> by_offset;
  for (const auto& [name, entry] : manifest.tensors) by_offset.emplace_back(&entry, name);
  std::sort(by_offset.begin(), by_offset.end(),
            [](const auto& a, const auto& b) { return a.first->offset < b.first->offset; });
  for (size_t i = 1; i < by_offset.size(); ++i) {
    const auto& [before, before_name] = by_offset[i - 1];
    const auto& [entry, name] = by_offset[i];
    if (before->offset + before->bytes > entry->offset) {
      return tensors.error(name, "overlaps " + std::string(before_name));
    }
  }
  return Status::okay();
}

Status read_tensors(const JsonObject& target, uint64_t weights_bytes, Manifest* manifest) {
  JsonObject tensors;
  SAPWOOD_TRY(target.read("tensors", &tensors));
  for (const TensorShape& wanted : tensors_of(manifest->spec)) {
    SAPWOOD_TRY(read_tensor(tensors, wanted, weights_bytes, &manifest->tensors[wanted.name]));
  }
  for (const std::string& name : tensors.keys()) {
    if (!manifest->tensors.contains(name)) {
      return tensors.error(name, "is a tensor that a model of this spec does not have");
    }
  }
  return check_overlaps(tensors, *manifest);
}

}  // namespace

Status read_target(const JsonObject& root, Manifest* manifest) {
  JsonObject target;
  SAPWOOD_TRY(root.read("target", &target));
  SAPWOOD_TRY(read_spec(target, &manifest->spec));
  SAPWOOD_TRY(read_listed_file(target, "weights", *manifest, &manifest->weights_file));
  if (target.has("onnx")) {
    SAPWOOD_TRY(read_listed_file(target, "onnx", *manifest, &manifest->onnx_file));
  }
  return read_tensors(target, manifest->file(manifest->weights_file)->bytes, manifest);
}

}  // namespace sapwood
