#include "model/bundle.h"

#include <bit>
#include <cassert>
#include <cmath>
#include <cstring>
#include <utility>

#include "base/json.h"
#include "kernels/kernels.h"
#include "model/tensors.h"

namespace sapwood {
namespace {

static_assert(std::endian::native == std::endian::little, "weights files are little-endian");

constexpr uint64_t kMaxManifestBytes = uint64_t{8} << 20;

Status export_again(Code code, const std::string& what) {
  return Status(code, what + "; export the bundle again");
}

Result<Manifest> read_manifest_file(const std::string& path) {
  const std::string file = path + "/manifest.json";
  const Result<std::string> text = read_file(file, kMaxManifestBytes);
  if (text.ok()) return parse_manifest(text.value(), file);
  if (text.status().code() != Code::kNotFound) return text.status();
  return Status(Code::kNotFound,
                path +
                    ": is not a bundle, there is no manifest.json in it; make one with "
                    "`sapwood export`");
}

// Maps a file of the bundle after checking its size, and its contents if asked to.
Result<FileMap> map_listed_file(const std::string& path, const FileEntry& entry, bool verify) {
  const std::string file = path + "/" + entry.name;
  Result<FileMap> map = FileMap::open(file, entry.bytes);
  if (!map.ok()) {
    if (map.status().code() == Code::kNotFound) {
      return export_again(Code::kNotFound, file + ": is missing, but manifest.json lists it");
    }
    if (map.status().code() != Code::kCorrupt) return map.status();
    return export_again(Code::kCorrupt, map.status().message() + " as manifest.json says");
  }
  if (verify && sha256(map->bytes()) != entry.sha256) {
    return export_again(Code::kCorrupt,
                        file + ": was changed or damaged, its checksum is not manifest.json's");
  }
  return map;
}

// Norms, biases and frequencies are few and enter every sum: one bad value spoils every answer.
Status check_vectors(const Bundle& bundle, const std::string& where) {
  for (const auto& [name, entry] : bundle.manifest().tensors) {
    for (const float value : bundle.values(name)) {
      if (std::isfinite(value)) continue;
      return export_again(Code::kCorrupt,
                          where + ": " + name + " holds a value that is not a finite number");
    }
  }
  return Status::okay();
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

Status check_scales(const Bundle& bundle, const std::string& where) {
  for (const auto& [name, entry] : bundle.manifest().tensors) {
    if (!entry.packed.has_value() || scales_are_finite(bundle.linear(name))) continue;
    return export_again(Code::kCorrupt,
                        where + ": " + name + " holds a scale that is not a finite number");
  }
  return Status::okay();
}

}  // namespace

Result<Bundle> Bundle::open(const std::string& path, const BundleOptions& options) {
  Result<Manifest> manifest = read_manifest_file(path);
  if (!manifest.ok()) return manifest.status();
  Bundle bundle;
  bundle.path_ = path;
  bundle.manifest_ = std::move(manifest).value();
  for (const FileEntry& entry : bundle.manifest_.files) {
    Result<FileMap> map = map_listed_file(path, entry, options.verify_checksums);
    if (!map.ok()) return map.status();
    if (entry.name == bundle.manifest_.weights_file) bundle.map_ = std::move(map).value();
  }
  bundle.weights_ = bundle.map_.bytes();
  const std::string weights_path = bundle.file_path(bundle.manifest_.weights_file);
  SAPWOOD_TRY(check_vectors(bundle, weights_path));
  if (options.verify_checksums) SAPWOOD_TRY(check_scales(bundle, weights_path));
  return bundle;
}

Result<Bundle> Bundle::over(Manifest manifest, std::span<const uint8_t> weights) {
  const FileEntry* entry = manifest.file(manifest.weights_file);
  if (entry == nullptr || weights.size() != entry->bytes) {
    return Status(Code::kInvalidArgument, "the weights are not of the size the manifest says");
  }
  if (reinterpret_cast<uintptr_t>(weights.data()) % kTensorAlignment != 0) {
    return Status(Code::kInvalidArgument, "the weights are not aligned to 64 bytes");
  }
  Bundle bundle;
  bundle.manifest_ = std::move(manifest);
  bundle.weights_ = weights;
  SAPWOOD_TRY(check_vectors(bundle, bundle.manifest_.weights_file));
  return bundle;
}

std::string Bundle::file_path(std::string_view name) const {
  return name.empty() ? std::string() : path_ + "/" + std::string(name);
}

LinearWeights Bundle::linear(std::string_view name) const {
  const auto found = manifest_.tensors.find(name);
  if (found == manifest_.tensors.end() || !found->second.packed.has_value()) return {};
  const TensorEntry& entry = found->second;
  LinearWeights weights;
  weights.data = weights_.data() + entry.offset;
  weights.outputs = entry.outputs;
  weights.inputs = entry.inputs;
  weights.format = *entry.packed;
  weights.plan = &measured_row_plan(kernels(), weights.format);
  return weights;
}

std::span<const float> Bundle::values(std::string_view name) const {
  const auto found = manifest_.tensors.find(name);
  if (found == manifest_.tensors.end() || found->second.packed.has_value()) return {};
  return {reinterpret_cast<const float*>(weights_.data() + found->second.offset),
          static_cast<size_t>(found->second.outputs)};
}

LayerWeights Bundle::layer(int index) const {
  assert(index >= 0 && index < spec().layers);
  const auto norm = [&](const char* part) { return vector(layer_tensor(index, part)); };
  const auto matrix = [&](const char* part) { return linear(layer_tensor(index, part)); };
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

std::span<const float> Bundle::rope(int layer) const {
  return spec().layer_is_sliding[static_cast<size_t>(layer)] ? rope_local() : rope_global();
}

}  // namespace sapwood
