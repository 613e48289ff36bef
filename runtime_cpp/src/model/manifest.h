// manifest.json: everything a bundle says about itself, checked, before any other file is touched.
//
// Example: {"schema_version": 1, "name": "SmolLM2-135M-Instruct", "target": {"spec": {...},
// "weights": "target.weights", "tensors": {"layers.0.qkv": {"format": "int4_g32_min",
// "shape": [960, 576], "offset": 16384, "bytes": 345600}, ...}}, ..., "files": [...]}
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/sha256.h"
#include "base/status.h"
#include "kernels/linear.h"
#include "model/spec.h"

namespace sapwood {

inline constexpr int kBundleSchema = 1;     // the newest this build reads
inline constexpr int kOperatorVersion = 1;  // of the domain com.endpoint.ai
inline constexpr uint64_t kMaxManifestBytes = uint64_t{8} << 20;
inline constexpr int kTensorAlignment = 64;  // bytes; offsets in the weights file

struct TensorEntry {
  std::optional<LinearFormat> packed;  // a matrix in this format; empty: plain numbers
  bool integers = false;               // int32 instead of float32, where it is not packed
  int outputs = 0;                     // of a matrix; how many numbers there are, where plain
  int inputs = 0;                      // of a matrix only
  uint64_t offset = 0;
  uint64_t bytes = 0;
};
using TensorMap = std::map<std::string, TensorEntry, std::less<>>;

struct FileEntry {
  std::string name;  // in the bundle's folder itself
  uint64_t bytes = 0;
  Sha256Digest sha256 = {};
};

// The entry of that name, or null.
const FileEntry* find_file(std::span<const FileEntry> files, std::string_view name);

struct TokenizerInfo {
  std::string file;
  std::string chat_template;        // a file; empty: none
  std::optional<int> bos_token_id;  // empty: the family adds none
  std::vector<int> eos_token_ids;   // the union of all that the model's files declare
};

struct DrafterEntry {
  std::string kind;  // "early_exit", or one that a newer Sapwood knows
  std::string file;  // empty: needs none
  int layers = 0;    // early_exit: of the target's, the first so many; fewer than all
};

// A program for ExecuTorch.
struct ExecutorchProgram {
  std::string file;     // empty: none
  std::string flavour;  // "fused": our layers; "xnnpack": XNNPACK's linears
};

struct Manifest {
  std::string name;
  std::string sapwood_version;  // that made it
  ModelSpec spec;
  std::string weights_file;
  TensorMap tensors;      // exactly tensors_of(spec)
  std::string onnx_file;  // empty: none
  ExecutorchProgram executorch;
  TokenizerInfo tokenizer;
  std::vector<DrafterEntry> drafters;
  std::string default_mode;
  int default_context_length = 0;  // at most spec.context_length
  std::vector<FileEntry> files;    // all but the manifest

  // Of the target's layers, how many an early exit runs; 0: the bundle has none.
  int early_exit_layers() const;

  // Null if there is none of this name.
  const FileEntry* file(std::string_view name) const { return find_file(files, name); }
};

// Checks all that can be known without the other files. `where` begins every message; it is the
// manifest's path. kUnsupported: well formed, but for another build; kCorrupt: anything else.
Result<Manifest> parse_manifest(std::string_view text, const std::string& where);

}  // namespace sapwood
