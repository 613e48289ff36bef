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

constexpr const char* kFlavours[] = {"fused", "xnnpack"};  // of programs for ExecuTorch
constexpr const char* kFamilies[] = {"llama", "qwen2", "qwen3", "gemma3"};

Status read_spec(const JsonObject& target, ModelSpec* spec) {
  JsonObject object;
  SAPWOOD_TRY(target.read("spec", &object));
  SAPWOOD_TRY(read_family(object, &spec->family));
  SAPWOOD_TRY(object.read("vocabulary_size", 1, kMaxVocabulary, &spec->vocabulary_size));
  SAPWOOD_TRY(object.read("hidden_size", 1, kMaxSize, &spec->hidden_size));
  SAPWOOD_TRY(read_layer_sizes(object, spec));
  SAPWOOD_TRY(object.read("layers", 1, kMaxLayers, &spec->layers));
  SAPWOOD_TRY(object.read("context_length", 1, kMaxPositions, &spec->context_length));
  SAPWOOD_TRY(object.read("embedding_scale", 1e-6, 1e6, &spec->embedding_scale));
  SAPWOOD_TRY(object.read("qkv_bias", &spec->qkv_bias));
  SAPWOOD_TRY(object.read("qk_norm", &spec->qk_norm));
  SAPWOOD_TRY(object.read("post_norms", &spec->post_norms));
  SAPWOOD_TRY(object.read("tied_head", &spec->tied_head));
  SAPWOOD_TRY(object.read("sliding_window", 0, kMaxPositions, &spec->sliding_window));
  SAPWOOD_TRY(object.read("layer_is_sliding", &spec->layer_is_sliding));
  const Status rules = check_spec(*spec);
  return rules.ok() ? rules : object.error(rules);
}

std::string shape_text(const TensorShape& shape) {
  return "[" + std::to_string(shape.outputs) +
         (shape.inputs > 0 ? ", " + std::to_string(shape.inputs) : "") + "]";
}

Status read_tensor(const JsonObject& tensors, const TensorShape& wanted, uint64_t weights_bytes,
                   TensorEntry* out) {
  JsonObject object;
  std::string format;
  std::vector<int> shape;
  SAPWOOD_TRY(tensors.read(wanted.name, &object));
  SAPWOOD_TRY(object.read("format", &format));
  out->packed = parse_linear_format(format);
  out->integers = format == "int32";
  if (!out->packed.has_value() && !out->integers && format != "float32") {
    return object.error("format",
                        printable(format) + " is not a format this build knows: update Sapwood",
                        Code::kUnsupported);
  }
  if (wanted.matrix != out->packed.has_value() || wanted.integers != out->integers) {
    const char* expected =
        wanted.matrix ? "a packed format" : (wanted.integers ? "int32" : "float32");
    return object.error("format",
                        std::string("expected ") + expected + ", found " + printable(format));
  }
  std::vector<int> wanted_shape = {wanted.outputs};
  if (wanted.inputs > 0) wanted_shape.push_back(wanted.inputs);
  SAPWOOD_TRY(object.read("shape", 0, std::numeric_limits<int>::max(), &shape));
  if (shape != wanted_shape) {
    return object.error("shape",
                        "does not fit the model's sizes, which ask for " + shape_text(wanted));
  }
  out->outputs = wanted.matrix ? wanted.outputs : wanted.outputs * std::max(wanted.inputs, 1);
  out->inputs = wanted.matrix ? wanted.inputs : 0;
  static_assert(sizeof(float) == sizeof(int32_t));
  uint64_t bytes = static_cast<uint64_t>(out->outputs) * sizeof(float);
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

Status check_overlaps(const JsonObject& tensors, const TensorMap& entries) {
  std::vector<std::pair<const TensorEntry*, std::string_view>> by_offset;
  for (const auto& [name, entry] : entries) by_offset.emplace_back(&entry, name);
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

// {"file": "target.pte", "flavour": "fused"}
Status read_executorch(const JsonObject& target, Manifest* manifest) {
  ExecutorchProgram& program = manifest->executorch;
  JsonObject object;
  SAPWOOD_TRY(target.read("executorch", &object));
  SAPWOOD_TRY(read_listed_file(object, "file", manifest->files, &program.file));
  SAPWOOD_TRY(object.read("flavour", &program.flavour));
  if (std::find(std::begin(kFlavours), std::end(kFlavours), program.flavour) !=
      std::end(kFlavours)) {
    return Status::okay();
  }
  return object.error(
      "flavour",
      printable(program.flavour) + " is not one this build knows (fused, xnnpack): update Sapwood",
      Code::kUnsupported);
}

}  // namespace

Status read_family(const JsonObject& object, std::string* family) {
  SAPWOOD_TRY(object.read("family", family));
  if (std::find(std::begin(kFamilies), std::end(kFamilies), *family) != std::end(kFamilies)) {
    return Status::okay();
  }
  return object.error(
      "family",
      printable(*family) +
          " is not a family this build knows (llama, qwen2, qwen3, gemma3): update Sapwood",
      Code::kUnsupported);
}

Status read_layer_sizes(const JsonObject& object, ModelSpec* spec) {
  std::string activation;
  SAPWOOD_TRY(object.read("intermediate_size", 1, kMaxSize, &spec->intermediate_size));
  SAPWOOD_TRY(object.read("heads", 1, kMaxHeads, &spec->heads));
  SAPWOOD_TRY(object.read("kv_heads", 1, kMaxHeads, &spec->kv_heads));
  SAPWOOD_TRY(object.read("head_dim", 1, kMaxHeadDim, &spec->head_dim));
  SAPWOOD_TRY(object.read("norm_epsilon", 1e-12, 0.1, &spec->norm_epsilon));
  SAPWOOD_TRY(object.read("attention_scale", 1e-6, 1e3, &spec->attention_scale));
  SAPWOOD_TRY(object.read("activation", &activation));
  if (activation != "silu" && activation != "gelu_tanh") {
    return object.error("activation", printable(activation) + " is not supported (silu, gelu_tanh)",
                        Code::kUnsupported);
  }
  spec->activation = activation == "silu" ? Activation::kSilu : Activation::kGeluTanh;
  return Status::okay();
}

Status read_tensors(const JsonObject& owner, std::span<const TensorShape> wanted,
                    uint64_t weights_bytes, const char* what, TensorMap* out) {
  JsonObject tensors;
  SAPWOOD_TRY(owner.read("tensors", &tensors));
  for (const TensorShape& shape : wanted) {
    SAPWOOD_TRY(read_tensor(tensors, shape, weights_bytes, &(*out)[shape.name]));
  }
  for (const std::string& name : tensors.keys()) {
    if (!out->contains(name)) {
      return tensors.error(name, std::string("is a tensor that ") + what + " does not have");
    }
  }
  return check_overlaps(tensors, *out);
}

Status read_target(const JsonObject& root, Manifest* manifest) {
  JsonObject target;
  SAPWOOD_TRY(root.read("target", &target));
  SAPWOOD_TRY(read_spec(target, &manifest->spec));
  SAPWOOD_TRY(read_listed_file(target, "weights", manifest->files, &manifest->weights_file));
  if (target.has("onnx")) {
    SAPWOOD_TRY(read_listed_file(target, "onnx", manifest->files, &manifest->onnx_file));
  }
  if (target.has("executorch")) SAPWOOD_TRY(read_executorch(target, manifest));
  return read_tensors(target, tensors_of(manifest->spec),
                      manifest->file(manifest->weights_file)->bytes, "a model of this spec",
                      &manifest->tensors);
}

}  // namespace sapwood
