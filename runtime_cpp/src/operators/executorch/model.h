// The host over ExecuTorch, inside the library that links it. The program opens it by way of
// model/executorch.h.
#pragma once

#include <memory>

#include "base/status.h"
#include "model/bundle.h"
#include "model/executorch.h"
#include "model/model.h"

namespace sapwood::executorch {

Result<std::unique_ptr<Model>> open_model(std::shared_ptr<const Bundle> bundle,
                                          const ExecutorchOptions& options);

}  // namespace sapwood::executorch
