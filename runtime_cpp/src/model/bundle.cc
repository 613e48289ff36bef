#include "model/bundle.h"

#include <cassert>
#include <utility>

#include "model/tensors.h"

namespace sapwood {
namespace {

constexpr const char* kKind = "bundle";

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

}  // namespace

Result<Bundle> Bundle::open(const std::string& path, const BundleOptions& options) {
  Result<Manifest> manifest = read_manifest_file(path);
  if (!manifest.ok()) return manifest.status();
  Bundle bundle;
  bundle.path_ = path;
  bundle.manifest_ = std::move(manifest).value();
  for (const FileEntry& entry : bundle.manifest_.files) {
    Result<FileMap> map = map_listed_file(path, entry, options.verify_checksums, kKind);
    if (!map.ok()) return map.status();
    if (entry.name == bundle.manifest_.weights_file) bundle.map_ = std::move(map).value();
  }
  bundle.weights_ = bundle.map_.bytes();
  SAPWOOD_TRY(bundle.tensors().check_finite(
      options.verify_checksums, bundle.file_path(bundle.manifest_.weights_file), kKind));
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
  SAPWOOD_TRY(bundle.tensors().check_finite(false, bundle.manifest_.weights_file, kKind));
  return bundle;
}

std::string Bundle::file_path(std::string_view name) const {
  return name.empty() ? std::string() : path_ + "/" + std::string(name);
}

LayerWeights Bundle::layer(int index) const {
  assert(index >= 0 && index < spec().layers);
  return tensors().layer(layer_tensor(index, ""));
}

std::span<const float> Bundle::rope(int layer) const {
  return spec().layer_is_sliding[static_cast<size_t>(layer)] ? rope_local() : rope_global();
}

}  // namespace sapwood
