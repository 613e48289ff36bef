// What the readers of a bundle's manifest (manifest.cc, manifest_target.cc) and of a draft's
// (draft_manifest.cc) share; no one else needs it.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "base/json.h"
#include "base/status.h"
#include "model/manifest.h"
#include "model/tensors.h"

namespace sapwood {

inline constexpr int kMaxPositions = 1 << 30;
inline constexpr uint64_t kMaxFileBytes = uint64_t{1} << 46;

// Far above any real model, and low enough that no product of two below overflows an int.
inline constexpr int kMaxVocabulary = 1 << 23;
inline constexpr int kMaxSize = 1 << 19;
inline constexpr int kMaxLayers = 1 << 10;
inline constexpr int kMaxHeads = 1 << 10;
inline constexpr int kMaxHeadDim = 1 << 10;

// kUnsupported if the document is newer than this build.
Status check_version(const JsonObject& root, const std::string& where);

Status read_files(const JsonObject& root, std::vector<FileEntry>* files);

// A field that names a file of the folder, which must be in `files`.
Status read_listed_file(const JsonObject& object, std::string_view key,
                        std::span<const FileEntry> files, std::string* out);

// 64 lower-case hexadecimal digits.
Status read_digest(const JsonObject& object, std::string_view key, Sha256Digest* out);

Status read_family(const JsonObject& object, std::string* family);

// What a decoder layer's kernels want to know of a spec beside its sizes.
Status read_layer_sizes(const JsonObject& object, ModelSpec* spec);

// owner.tensors: exactly the tensors `wanted`, inside a weights file of that size, none over
// another. `what`: of what they are the tensors, for messages.
Status read_tensors(const JsonObject& owner, std::span<const TensorShape> wanted,
                    uint64_t weights_bytes, const char* what, TensorMap* out);

// The spec, the tensors and the graph. manifest->files has been read.
Status read_target(const JsonObject& root, Manifest* manifest);

}  // namespace sapwood
