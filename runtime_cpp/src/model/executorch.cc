#include "model/executorch.h"

#include <filesystem>
#include <utility>

#include "model/executorch_library.h"

namespace sapwood {

Result<std::unique_ptr<Model>> open_executorch_model(std::shared_ptr<const Bundle> bundle,
                                                     const ExecutorchOptions& options) {
  if (options.threads < 1 || options.threads > 256) {
    return Status(Code::kInvalidArgument, "threads: " + std::to_string(options.threads) +
                                              " is not between 1 and 256; try the number of cores");
  }
  if (options.max_rows < 1 || options.max_rows > 4096) {
    return Status(Code::kInvalidArgument,
                  "max_rows: " + std::to_string(options.max_rows) + " is not between 1 and 4096");
  }
  const std::string path = bundle->file_path(bundle->manifest().executorch.file);
  if (path.empty()) {
    return Status(Code::kUnsupported,
                  "the bundle '" + bundle->manifest().name +
                      "' holds no ExecuTorch program; export it with --format executorch");
  }
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) {
    return Status(Code::kNotFound, path + ": is missing; export the bundle again");
  }
  const Result<const ExecutorchEntry*> entry = load_executorch(options);
  if (!entry.ok()) return entry.status();
  return entry.value()->open(std::move(bundle), options);
}

}  // namespace sapwood
