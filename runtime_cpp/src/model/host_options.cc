#include "model/host_options.h"

#include <filesystem>
#include <system_error>

namespace sapwood {

Status check_host_options(int threads, int max_rows) {
  if (threads < 1 || threads > 256) {
    return Status(Code::kInvalidArgument, "threads: " + std::to_string(threads) +
                                              " is not between 1 and 256; try the number of cores");
  }
  if (max_rows < 1 || max_rows > 4096) {
    return Status(Code::kInvalidArgument,
                  "max_rows: " + std::to_string(max_rows) + " is not between 1 and 4096");
  }
  return Status::okay();
}

Result<std::string> graph_path(const Bundle& bundle, const std::string& file, const char* what,
                               const char* format) {
  std::string path = bundle.file_path(file);
  if (path.empty()) {
    return Status(Code::kUnsupported, "the bundle '" + bundle.manifest().name + "' holds no " +
                                          what + "; export it with --format " + format);
  }
  std::error_code error;
  if (!std::filesystem::is_regular_file(path, error)) {
    return Status(Code::kNotFound, path + ": is missing; export the bundle again");
  }
  return path;
}

}  // namespace sapwood
