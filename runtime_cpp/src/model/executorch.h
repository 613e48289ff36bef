// The ExecuTorch host: the bundle's target.pte, our operators, and the KV store's own memory.
//
// ExecuTorch is C++, so what calls it lies in a library of its own, libsapwood_executorch.so, which
// is loaded when a model is opened, and ExecuTorch's libraries with it: neither torch nor Python.
// The fused flavour gives the same bits as the native host; XNNPACK's linears round otherwise.
#pragma once

#include <memory>
#include <string>

#include "base/status.h"
#include "model/bundle.h"
#include "model/model.h"

namespace sapwood {

struct ExecutorchOptions {
  int threads = 1;
  int max_rows = 256;  // rows a pass takes at most, and no more than the graph was exported for

  // libsapwood_executorch.so. Empty: what SAPWOOD_EXECUTORCH_LIBRARY names, else what the system
  // finds.
  std::string library;

  // The folder with libexecutorch.so, such as executorch/lib in the wheel. Empty: what
  // SAPWOOD_EXECUTORCH_RUNTIME names, else what the system finds.
  std::string runtime;
};

// Keeps the bundle open for as long as the model lives. One pass at a time.
Result<std::unique_ptr<Model>> open_executorch_model(std::shared_ptr<const Bundle> bundle,
                                                     const ExecutorchOptions& options);

}  // namespace sapwood
