#include "model/weights.h"

#include <bit>
#include <cmath>
#include <cstring>

#include "kernels/kernels.h"

namespace sapwood {
namespace {

static_assert(std::endian::native == std::endian::little, "weights files are little-endian");

Status export_again(Code code, const std::string& what, const char* kind) {
  return Status(code, what + "; export the " + kind + " again");
}

// Scales and minima close every group of a panel (kernels/linear.h).
bool scales_are_finite(const LinearWeights& weights) {
  const size_t halves = kPanel * (weights.format.has_min ? 2 : 1);
  const size_t group_bytes = weights.format.group_bytes();
  const size_t groups = static_cast<size_t>(weights.panels()) * weights.groups();
  unsigned bad = 0;
  for (size_t group = 0; group < groups; ++group) {
    uint16_t scales[2 * kPanel];
    const uint8_t* end = weights.data + (group + 1) * group_bytes;
    std::memcpy(scales, end - halves * sizeof(uint16_t), halves * sizeof(uint16_t));
    for (size_t i = 0; i < halves; ++i) bad |= (scales[i] & 0x7c00u) == 0x7c00u;
  }
  return bad == 0;
}

}  // namespace

Result<FileMap> map_listed_file(const std::string& folder, const FileEntry& entry, bool verify,
                                const char* kind) {
  const std::string file = folder + "/" + entry.name;
  Result<FileMap> map = FileMap::open(file, entry.bytes);
  if (!map.ok()) {
    if (map.status().code() == Code::kNotFound) {
      return export_again(Code::kNotFound, file + ": is missing, but manifest.json lists it", kind);
    }
    if (map.status().code() != Code::kCorrupt) return map.status();
    return export_again(Code::kCorrupt, map.status().message() + " as manifest.json says", kind);
  }
  if (verify && sha256(map->bytes()) != entry.sha256) {
    return export_again(Code::kCorrupt,
                        file + ": was changed or damaged, its checksum is not manifest.json's",
                        kind);
  }
  return map;
}

LinearWeights Weights::linear(std::string_view name) const {
  const auto found = tensors_.find(name);
  if (found == tensors_.end() || !found->second.packed.has_value()) return {};
  const TensorEntry& entry = found->second;
  LinearWeights weights;
  weights.data = bytes_.data() + entry.offset;
  weights.outputs = entry.outputs;
  weights.inputs = entry.inputs;
  weights.format = *entry.packed;
  weights.plan = &measured_row_plan(kernels(), weights.format);
  return weights;
}

std::span<const uint8_t> Weights::plain(std::string_view name, bool integers) const {
  const auto found = tensors_.find(name);
  if (found == tensors_.end() || found->second.packed.has_value() ||
      found->second.integers != integers) {
    return {};
  }
  return bytes_.subspan(found->second.offset, found->second.bytes);
}

std::span<const float> Weights::values(std::string_view name) const {
  const std::span<const uint8_t> bytes = plain(name, false);
  return {reinterpret_cast<const float*>(bytes.data()), bytes.size() / sizeof(float)};
}

std::span<const int32_t> Weights::integers(std::string_view name) const {
  const std::span<const uint8_t> bytes = plain(name, true);
  return {reinterpret_cast<const int32_t*>(bytes.data()), bytes.size() / sizeof(int32_t)};
}

LayerWeights Weights::layer(const std::string& prefix) const {
  const auto norm = [&](const char* part) { return values(prefix + part).data(); };
  const auto matrix = [&](const char* part) { return linear(prefix + part); };
  LayerWeights weights;
  weights.attention_norm = norm("attention_norm");
  weights.attention_post_norm = norm("attention_post_norm");
  weights.mlp_norm = norm("mlp_norm");
  weights.mlp_post_norm = norm("mlp_post_norm");
  weights.qkv_bias = norm("qkv_bias");
  weights.q_norm = norm("q_norm");
  weights.k_norm = norm("k_norm");
  weights.qkv = matrix("qkv");
  weights.output = matrix("output");
  weights.gate_up = matrix("gate_up");
  weights.down = matrix("down");
  return weights;
}

// Norms, biases and frequencies are few and enter every sum: one bad value spoils every answer.
Status Weights::check_finite(bool quantisation_scales, const std::string& where,
                             const char* kind) const {
  for (const auto& [name, entry] : tensors_) {
    for (const float value : values(name)) {
      if (std::isfinite(value)) continue;
      return export_again(Code::kCorrupt,
                          where + ": " + name + " holds a value that is not a finite number", kind);
    }
  }
  for (const auto& [name, entry] : tensors_) {
    if (!quantisation_scales || !entry.packed || scales_are_finite(linear(name))) continue;
    return export_again(Code::kCorrupt,
                        where + ": " + name + " holds a scale that is not a finite number", kind);
  }
  return Status::okay();
}

}  // namespace sapwood
