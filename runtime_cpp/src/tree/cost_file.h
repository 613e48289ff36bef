// What `sapwood tune` measured, as it lies in the user's cache: one JSON file a device and bundle.
#pragma once

#include <string>

#include "base/status.h"
#include "tree/cost_grid.h"

namespace sapwood {

struct CostFile {
  CostGrid grid;
  // What it was measured on; a pass costs something else elsewhere.
  std::string weights_sha256;  // of the target's weights, in hexadecimal
  std::string host;            // "native", ...
  std::string kernels;         // Kernels::name
  std::string kv;              // the KV cache: "float16", "int8"
  int threads = 0;
};

// kNotFound for a file that is not there, kCorrupt for one that says something impossible.
Result<CostFile> read_cost_file(const std::string& path);

}  // namespace sapwood
