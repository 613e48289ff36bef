#include "test_weights.h"

#include <cmath>
#include <utility>
#include <vector>

#include "base/half.h"
#include "base/sha256.h"
#include "model/manifest.h"

namespace sapwood {

using nlohmann::json;

TestWeights::TestWeights(std::string layer_format, std::string wide_format, uint32_t seed)
    : layer_format_(std::move(layer_format)), wide_format_(std::move(wide_format)), random_(seed) {}

void TestWeights::set_rope_base(const std::string& name, double base) {
  rope_name_ = name;
  rope_base_ = base;
}

void TestWeights::add(const TensorShape& tensor) {
  bytes_.resize((bytes_.size() + kTensorAlignment - 1) / kTensorAlignment * kTensorAlignment);
  const size_t begin = bytes_.size();
  std::string format = tensor.integers ? "int32" : "float32";
  json shape = {tensor.outputs};
  if (tensor.inputs > 0) shape.push_back(tensor.inputs);
  if (tensor.matrix) {
    const bool wide = tensor.name == "embedding" || tensor.name == "head";
    format = wide ? wide_format_ : layer_format_;
    add_matrix(tensor, *parse_linear_format(format));
  } else if (tensor.integers) {
    add_integers(tensor.outputs);
  } else {
    add_vector(tensor);
  }
  tensors_[tensor.name] = {
      {"format", format}, {"shape", shape}, {"offset", begin}, {"bytes", bytes_.size() - begin}};
}

float TestWeights::uniform(float low, float high) {
  return low + (high - low) * static_cast<float>(random_() >> 8) * 0x1p-24f;
}

// A sample without replacement, in order.
void TestWeights::add_integers(int count) {
  int wanted = count;
  for (int value = 0; value < limit_ && wanted > 0; ++value) {
    if (static_cast<int>(random_() % static_cast<uint32_t>(limit_ - value)) >= wanted) continue;
    append(static_cast<int32_t>(value));
    --wanted;
  }
}

void TestWeights::add_vector(const TensorShape& tensor) {
  const bool rope = tensor.name.starts_with("rope.");
  const bool bias = tensor.name.ends_with("bias") || tensor.name.starts_with("uncertainty.");
  const double base = tensor.name == rope_name_ ? rope_base_ : 1e4;
  const int numbers = tensor.outputs * std::max(tensor.inputs, 1);
  for (int i = 0; i < numbers; ++i) {
    if (rope)
      append(static_cast<float>(std::pow(base, -static_cast<double>(i) / numbers)));
    else
      append(bias ? uniform(-0.3f, 0.3f) : uniform(0.8f, 1.2f));
  }
}

// Any codes are valid; scales keep the output about as large as the input.
void TestWeights::add_matrix(const TensorShape& tensor, const LinearFormat& format) {
  const float spread = format.bits == 8 ? 74.f : 4.6f;  // standard deviation of uniform codes
  const float scale = 1.f / (spread * std::sqrt(static_cast<float>(tensor.inputs)));
  const size_t code_bytes = static_cast<size_t>(format.group) * kPanel * format.bits / 8;
  for (int panel = 0; panel < (tensor.outputs + kPanel - 1) / kPanel; ++panel) {
    for (int group = 0; group < tensor.inputs / format.group; ++group) {
      for (size_t i = 0; i < code_bytes; ++i) append(static_cast<uint8_t>(random_()));
      float scales[kPanel] = {};
      for (int lane = 0; lane < kPanel; ++lane) {
        if (panel * kPanel + lane < tensor.outputs) scales[lane] = scale * uniform(0.5f, 1.5f);
        append(float_to_half(scales[lane]));
      }
      if (!format.has_min) continue;
      for (const float lane_scale : scales) append(float_to_half(-7.5f * lane_scale));
    }
  }
}

json file_entry(const std::string& name, const std::string& contents) {
  const Sha256Digest digest =
      sha256({reinterpret_cast<const uint8_t*>(contents.data()), contents.size()});
  return {{"name", name}, {"bytes", contents.size()}, {"sha256", hexadecimal(digest)}};
}

}  // namespace sapwood
