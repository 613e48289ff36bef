#include "measure/random_model.h"

#include <array>
#include <cmath>
#include <cstring>
#include <new>
#include <optional>
#include <string>
#include <utility>

#include "base/half.h"
#include "model/tensors.h"

namespace sapwood {
namespace {

constexpr std::array<std::string_view, 4> kShapes = {"smollm2-135m", "qwen2.5-0.5b", "qwen2.5-1.5b",
                                                     "llama-3.2-1b"};

struct Sizes {
  int vocabulary, hidden, intermediate, layers, heads, kv_heads, head_dim;
};
constexpr std::array<Sizes, 4> kSizes = {{{49152, 576, 1536, 30, 9, 3, 64},
                                          {151936, 896, 4864, 24, 14, 2, 64},
                                          {151936, 1536, 8960, 28, 12, 2, 128},
                                          {128256, 2048, 8192, 16, 32, 8, 64}}};

ModelSpec spec_of(std::string_view shape, const Sizes& sizes) {
  ModelSpec spec;
  spec.family = shape.starts_with("qwen") ? "qwen2" : "llama";
  spec.qkv_bias = spec.family == "qwen2";
  spec.vocabulary_size = sizes.vocabulary;
  spec.hidden_size = sizes.hidden;
  spec.intermediate_size = sizes.intermediate;
  spec.layers = sizes.layers;
  spec.heads = sizes.heads;
  spec.kv_heads = sizes.kv_heads;
  spec.head_dim = sizes.head_dim;
  spec.context_length = 8192;
  spec.attention_scale = 1.0f / std::sqrt(static_cast<float>(sizes.head_dim));
  spec.tied_head = true;
  spec.layer_is_sliding.assign(static_cast<size_t>(sizes.layers), false);
  return spec;
}

// Codes from a cheap generator; scales that keep an output about as large as its input.
void fill_matrix(uint8_t* bytes, const TensorShape& tensor, const LinearFormat& format) {
  uint64_t state = 0x9e3779b97f4a7c15u + static_cast<uint64_t>(tensor.outputs);
  const float spread = format.bits == 8 ? 74.0f : 4.6f;  // standard deviation of uniform codes
  const float scale = 1.0f / (spread * std::sqrt(static_cast<float>(tensor.inputs)));
  const uint16_t scale_half = float_to_half(scale);
  const uint16_t min_half = float_to_half(-7.5f * scale);
  const size_t code_bytes = static_cast<size_t>(format.group) * kPanel * format.bits / 8;
  const LinearWeights weights{bytes, tensor.outputs, tensor.inputs, format};
  for (uint8_t* group = bytes; group < bytes + weights.bytes(); group += format.group_bytes()) {
    for (size_t i = 0; i < code_bytes; i += sizeof state) {
      state ^= state << 13, state ^= state >> 7, state ^= state << 17;  // Marsaglia 2003, xorshift
      std::memcpy(group + i, &state, sizeof state);
    }
    for (int lane = 0; lane < kPanel; ++lane) {
      std::memcpy(group + code_bytes + lane * 2, &scale_half, 2);
      if (format.has_min) {
        std::memcpy(group + code_bytes + (kPanel + lane) * 2, &min_half, 2);
      }
    }
  }
}

void fill_vector(uint8_t* bytes, const TensorShape& tensor) {
  for (int i = 0; i < tensor.outputs; ++i) {
    float value = 1.0f;
    if (tensor.name.starts_with("rope.")) {
      value = static_cast<float>(std::pow(1e4, -static_cast<double>(i) / tensor.outputs));
    } else if (tensor.name.ends_with("bias")) {
      value = 0.0f;
    }
    std::memcpy(bytes + static_cast<size_t>(i) * sizeof value, &value, sizeof value);
  }
}

struct Aligned {
  void operator()(uint8_t* memory) const { ::operator delete[](memory, std::align_val_t{4096}); }
};

struct InMemory {
  std::unique_ptr<uint8_t[], Aligned> weights;
  std::optional<Bundle> bundle;
};

}  // namespace

std::span<const std::string_view> known_shapes() { return kShapes; }

Result<std::shared_ptr<const Bundle>> random_model(std::string_view shape) {
  size_t index = 0;
  while (index < kShapes.size() && kShapes[index] != shape) ++index;
  if (index == kShapes.size()) {
    std::string message = "shape: " + std::string(shape) + " is not one of";
    for (const std::string_view known : kShapes) message += " " + std::string(known);
    return Status(Code::kInvalidArgument, message);
  }

  Manifest manifest;
  manifest.name = shape;
  manifest.spec = spec_of(shape, kSizes[index]);
  manifest.weights_file = "target.weights";
  SAPWOOD_TRY(check_spec(manifest.spec));
  const std::vector<TensorShape> tensors = tensors_of(manifest.spec);
  uint64_t size = 0;
  for (const TensorShape& tensor : tensors) {
    TensorEntry entry;
    entry.outputs = tensor.outputs;
    entry.inputs = tensor.inputs;
    entry.offset = size;
    if (tensor.matrix) {
      const bool wide = tensor.name == "embedding" || tensor.name == "head";
      entry.packed = wide ? LinearFormat{8, 32, false} : LinearFormat{4, 32, true};
      entry.bytes = LinearWeights{nullptr, tensor.outputs, tensor.inputs, *entry.packed}.bytes();
    } else {
      entry.bytes = static_cast<uint64_t>(tensor.outputs) * sizeof(float);
    }
    size += (entry.bytes + kTensorAlignment - 1) / kTensorAlignment * kTensorAlignment;
    manifest.tensors[tensor.name] = entry;
  }

  manifest.files.push_back({manifest.weights_file, size, {}});

  auto memory = std::make_shared<InMemory>();
  memory->weights.reset(
      static_cast<uint8_t*>(::operator new[](size, std::align_val_t{4096}, std::nothrow)));
  if (memory->weights == nullptr) {
    return Status(Code::kExhausted, "shape: " + std::string(shape) + " needs " +
                                        std::to_string(size >> 20) + " MiB, which are not free");
  }
  for (const TensorShape& tensor : tensors) {
    const TensorEntry& entry = manifest.tensors.find(tensor.name)->second;
    uint8_t* bytes = memory->weights.get() + entry.offset;
    tensor.matrix ? fill_matrix(bytes, tensor, *entry.packed) : fill_vector(bytes, tensor);
  }
  Result<Bundle> bundle = Bundle::over(std::move(manifest), {memory->weights.get(), size});
  if (!bundle.ok()) return bundle.status();
  memory->bundle = std::move(bundle).value();
  return std::shared_ptr<const Bundle>(memory, &*memory->bundle);
}

}  // namespace sapwood
