// The ONNX Runtime host: the bundle's target.onnx, our operators, and the KV store's own memory.
//
// ONNX Runtime is no dependency of the build: its library is loaded when a model is opened. It
// keeps the graph; the operators call the same kernels as the native host, on a thread team of this
// model, so both hosts give the same bits. Present only where SAPWOOD_WITH_ONNXRUNTIME is defined.
#pragma once

#include <memory>
#include <string>

#include "base/status.h"
#include "model/bundle.h"
#include "model/model.h"

namespace sapwood {

struct OnnxRuntimeOptions {
  int threads = 1;
  int max_rows = 256;  // rows a pass takes at most; a longer prompt comes in chunks

  // libonnxruntime.so, version 1.24 or later, such as the one in the wheel's folder
  // onnxruntime/capi. Empty: what SAPWOOD_ONNXRUNTIME_LIBRARY names, else what the system finds.
  std::string library;
};

// Keeps the bundle open for as long as the model lives. One pass at a time.
Result<std::unique_ptr<Model>> open_onnxruntime_model(std::shared_ptr<const Bundle> bundle,
                                                      const OnnxRuntimeOptions& options);

}  // namespace sapwood
