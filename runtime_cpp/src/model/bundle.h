// A bundle, opened: its manifest checked, its weights mapped.
//
//   Result<Bundle> bundle = Bundle::open("bundles/smollm2-135m");
//   if (!bundle.ok()) return bundle.status();  // one line: what, where, what to do
//   LayerWeights layer = bundle->layer(0);     // points into the mapped file
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>

#include "base/file_map.h"
#include "base/status.h"
#include "kernels/decoder_layer.h"
#include "model/manifest.h"
#include "model/weights.h"

namespace sapwood {

struct BundleOptions {
  // Also reads every byte: checksums of all files, and that no quantisation scale is infinite or
  // not a number. Without it sizes, shapes and offsets are checked all the same.
  bool verify_checksums = true;
};

// Movable; pointers and spans it gave stay valid until it is destroyed.
class Bundle {
 public:
  // `path` is the bundle's folder.
  static Result<Bundle> open(const std::string& path, const BundleOptions& options = {});

  // A bundle over weights that the caller holds, 64-byte aligned, of the size the manifest says;
  // they must outlive it. Nothing else of it exists as a file.
  static Result<Bundle> over(Manifest manifest, std::span<const uint8_t> weights);

  const Manifest& manifest() const { return manifest_; }
  const ModelSpec& spec() const { return manifest_.spec; }
  const TokenizerInfo& tokenizer() const { return manifest_.tokenizer; }

  // All of target.weights, as mapped.
  std::span<const uint8_t> weights() const { return weights_; }

  const std::string& folder() const { return path_; }  // empty over weights of the caller's

  // The path of a file that the manifest lists; empty for an empty name (an optional file that the
  // bundle lacks), so that file_path(manifest().onnx_file) is empty or a path.
  std::string file_path(std::string_view name) const;

  // A matrix; data is null if there is none of this name.
  LinearWeights linear(std::string_view name) const { return tensors().linear(name); }
  LinearWeights embedding() const { return linear("embedding"); }
  LinearWeights head() const { return linear(spec().tied_head ? "embedding" : "head"); }

  // A vector; null, or empty, if there is none of this name.
  const float* vector(std::string_view name) const { return values(name).data(); }
  std::span<const float> values(std::string_view name) const { return tensors().values(name); }

  // Everything decoder_layer needs of layer 0 .. spec().layers - 1.
  LayerWeights layer(int index) const;

  // Inverse frequencies, [head_dim / 2], for layers that see all and for sliding ones (empty if
  // there are none). rope(i) is the one layer i uses.
  std::span<const float> rope_global() const { return values("rope.global"); }
  std::span<const float> rope_local() const { return values("rope.local"); }
  std::span<const float> rope(int layer) const;

 private:
  Bundle() = default;

  Weights tensors() const { return {manifest_.tensors, weights_}; }

  std::string path_;
  Manifest manifest_;
  FileMap map_;
  std::span<const uint8_t> weights_;
};

}  // namespace sapwood
