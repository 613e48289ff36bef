// What manifest.cc and manifest_target.cc share; no one else needs it.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>

#include "base/json.h"
#include "base/status.h"
#include "model/manifest.h"

namespace sapwood {

inline constexpr int kMaxPositions = 1 << 30;
inline constexpr uint64_t kMaxFileBytes = uint64_t{1} << 46;

// A field that names a file of the bundle, which must be in manifest.files.
Status read_listed_file(const JsonObject& object, std::string_view key, const Manifest& manifest,
                        std::string* out);

// The spec, the tensors and the graph. manifest->files has been read.
Status read_target(const JsonObject& root, Manifest* manifest);

}  // namespace sapwood
