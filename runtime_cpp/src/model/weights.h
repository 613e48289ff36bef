// Tensors by name inside a mapped weights file, of a bundle or of a draft.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/file_map.h"
#include "base/status.h"
#include "kernels/decoder_layer.h"
#include "model/manifest.h"

namespace sapwood {

// Maps a file that a manifest lists after checking its size, and its checksum if `verify`. `kind`,
// "bundle" or "draft": what is to be exported again where that fails.
Result<FileMap> map_listed_file(const std::string& folder, const FileEntry& entry, bool verify,
                                const char* kind);

// Tensors over bytes that someone else keeps; both must outlive it.
class Weights {
 public:
  Weights(const TensorMap& tensors, std::span<const uint8_t> bytes)
      : tensors_(tensors), bytes_(bytes) {}

  // A matrix; data is null if there is none of this name.
  LinearWeights linear(std::string_view name) const;
  // float32; empty if there is none of this name.
  std::span<const float> values(std::string_view name) const;
  // int32; likewise.
  std::span<const int32_t> integers(std::string_view name) const;

  // A decoder layer's tensors, each with `prefix` in front of its name; null where there is none.
  LayerWeights layer(const std::string& prefix) const;

  // kCorrupt, beginning with `where`, if a float32 value is no finite number, or with
  // `quantisation_scales` one of a matrix's scales or minima.
  Status check_finite(bool quantisation_scales, const std::string& where, const char* kind) const;

 private:
  std::span<const uint8_t> plain(std::string_view name, bool integers) const;

  const TensorMap& tensors_;
  const std::span<const uint8_t> bytes_;
};

}  // namespace sapwood
