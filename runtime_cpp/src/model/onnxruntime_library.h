// Loading ONNX Runtime.
#pragma once

#include <onnxruntime_c_api.h>

#include <string>

#include "base/status.h"

namespace sapwood {

// The interface of the library at `path`; empty: what SAPWOOD_ONNXRUNTIME_LIBRARY names, else what
// the system's loader finds. It stays loaded until the process ends: ONNX Runtime cannot be
// unloaded safely, and loading it again costs nothing.
Result<const OrtApi*> load_onnxruntime(const std::string& path);

// An error if a library of this version ("1.32.0") lacks a part of the interface that we use.
Status check_onnxruntime_version(const char* version);

}  // namespace sapwood
