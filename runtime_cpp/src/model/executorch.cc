#include "model/executorch.h"

#include <utility>

#include "model/executorch_library.h"
#include "model/host_options.h"

namespace sapwood {

Result<std::unique_ptr<Model>> open_executorch_model(std::shared_ptr<const Bundle> bundle,
                                                     const ExecutorchOptions& options) {
  SAPWOOD_TRY(check_host_options(options.threads, options.max_rows));
  const Result<std::string> path =
      graph_path(*bundle, bundle->manifest().executorch.file, "ExecuTorch program", "executorch");
  if (!path.ok()) return path.status();
  const Result<const ExecutorchEntry*> entry = load_executorch(options);
  if (!entry.ok()) return entry.status();
  return entry.value()->open(std::move(bundle), options);
}

}  // namespace sapwood
