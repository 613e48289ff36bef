// Manifests of good bundles and drafts, made bad.
#pragma once

#include <gtest/gtest.h>

#include <functional>
#include <nlohmann/json.hpp>
#include <string>

#include "base/file_map.h"
#include "temporary_folder.h"

namespace sapwood {

inline nlohmann::json manifest_of(const std::string& folder) {
  return nlohmann::json::parse(read_file(folder + "/manifest.json", 1 << 24).value());
}

inline void change_manifest(const std::string& folder,
                            const std::function<void(nlohmann::json&)>& change) {
  nlohmann::json manifest = manifest_of(folder);
  change(manifest);
  write_text(folder + "/manifest.json", manifest.dump());
}

// An error about the folder: of one line, and without the manifest's path where it begins with it.
inline std::string without_manifest_path(std::string message, const std::string& folder) {
  const std::string prefix = folder + "/manifest.json: ";
  EXPECT_EQ(message.find('\n'), std::string::npos);
  if (message.starts_with(prefix)) message.erase(0, prefix.size());
  return message;
}

}  // namespace sapwood
