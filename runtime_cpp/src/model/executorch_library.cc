#include "model/executorch_library.h"

#include <dlfcn.h>

#include <cstdlib>

namespace sapwood {
namespace {

constexpr const char* kLibrary = "libsapwood_executorch.so";
constexpr const char* kRuntime = "libexecutorch.so";
constexpr const char* kLibraryVariable = "SAPWOOD_EXECUTORCH_LIBRARY";
constexpr const char* kRuntimeVariable = "SAPWOOD_EXECUTORCH_RUNTIME";

std::string or_variable(const std::string& given, const char* variable) {
  const char* named = std::getenv(variable);
  return !given.empty() || named == nullptr ? given : named;
}

}  // namespace

Status load_executorch_part(const std::string& runtime, const char* name) {
  const std::string folder = or_variable(runtime, kRuntimeVariable);
  const std::string path = folder.empty() ? name : folder + "/" + name;
  if (dlopen(path.c_str(), RTLD_NOW | RTLD_GLOBAL) != nullptr) return Status::okay();
  return Status(Code::kNotFound, "ExecuTorch cannot be loaded from " + path + " (" + dlerror() +
                                     "); install it (pip: executorch==1.5.1) or name its folder "
                                     "of libraries in " +
                                     kRuntimeVariable);
}

Result<const ExecutorchEntry*> load_executorch(const ExecutorchOptions& options) {
  // First, so that our library, which needs it by name, finds it wherever it lies.
  SAPWOOD_TRY(load_executorch_part(options.runtime, kRuntime));
  std::string path = or_variable(options.library, kLibraryVariable);
  if (path.empty()) path = kLibrary;
  void* handle = dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr) {
    return Status(Code::kNotFound, "Sapwood's operators for ExecuTorch cannot be loaded from " +
                                       path + " (" + dlerror() +
                                       "); build with SAPWOOD_EXECUTORCH, or name the library in " +
                                       kLibraryVariable);
  }
  using Entry = const ExecutorchEntry* (*)();
  const auto entry = reinterpret_cast<Entry>(dlsym(handle, kExecutorchEntry));
  if (entry == nullptr) {
    return Status(
        Code::kUnsupported,
        path + ": is not Sapwood's library for ExecuTorch (it has no " + kExecutorchEntry + ")");
  }
  const ExecutorchEntry* offered = entry();
  if (std::string(offered->version) != SAPWOOD_VERSION || offered->layout != kExecutorchLayout) {
    return Status(Code::kUnsupported, path + ": is of Sapwood " + offered->version +
                                          ", from another build than this " + SAPWOOD_VERSION +
                                          "; use the library that was built with it");
  }
  return offered;
}

}  // namespace sapwood
