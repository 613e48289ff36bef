// ExecuTorch's parts for programs whose linears XNNPACK computes.
#pragma once

#include <string>

#include "base/status.h"

namespace sapwood::executorch {

// Loads the XNNPACK backend and ExecuTorch's own kernels from `runtime` (model/executorch.h), and
// has XNNPACK use so many threads, the caller among them: of every program in the process.
Status load_xnnpack(const std::string& runtime, int threads);

}  // namespace sapwood::executorch
