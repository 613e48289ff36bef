#include "model/onnxruntime_library.h"

#include <dlfcn.h>

#include <cstdio>
#include <cstdlib>

#include "operators/onnxruntime/ort_status.h"

namespace sapwood {
namespace {

constexpr const char* kVariable = "SAPWOOD_ONNXRUNTIME_LIBRARY";
constexpr const char* kSystemNames[] = {"libonnxruntime.so.1", "libonnxruntime.so"};

Status cannot_load(const std::string& path, const char* reason) {
  return Status(Code::kNotFound, "ONNX Runtime cannot be loaded from " + path + " (" + reason +
                                     "); install it (pip: onnxruntime) or name its library in " +
                                     kVariable);
}

Result<void*> open_library(const std::string& path) {
  const char* named = std::getenv(kVariable);
  const std::string chosen = !path.empty() ? path : named != nullptr ? named : "";
  if (!chosen.empty()) {
    if (void* handle = dlopen(chosen.c_str(), RTLD_NOW | RTLD_LOCAL)) return handle;
    return cannot_load(chosen, dlerror());
  }
  for (const char* name : kSystemNames) {
    if (void* handle = dlopen(name, RTLD_NOW | RTLD_LOCAL)) return handle;
  }
  return cannot_load("the system's folders", "there is no libonnxruntime.so");
}

}  // namespace

Status check_onnxruntime_version(const char* version) {
  unsigned major = 0;
  unsigned minor = 0;
  const bool is_version = std::sscanf(version, "%u.%u", &major, &minor) == 2;
  if (is_version && (major > 1 || (major == 1 && minor >= ort::kApiVersion))) return Status::okay();
  return Status(Code::kUnsupported, std::string("ONNX Runtime ") + version + " is too old: 1." +
                                        std::to_string(ort::kApiVersion) +
                                        " or later is needed (pip: onnxruntime)");
}

Result<const OrtApi*> load_onnxruntime(const std::string& path) {
  const Result<void*> handle = open_library(path);
  if (!handle.ok()) return handle.status();
  using Entry = const OrtApiBase* (*)();
  const auto entry = reinterpret_cast<Entry>(dlsym(handle.value(), "OrtGetApiBase"));
  const OrtApiBase* base = entry != nullptr ? entry() : nullptr;
  if (base == nullptr) {
    return Status(Code::kUnsupported, (path.empty() ? "the library found" : path) +
                                          ": is no ONNX Runtime (it has no OrtGetApiBase)");
  }
  // Before the interface is asked for: an old library would write its refusal to stderr.
  const char* version = base->GetVersionString();
  SAPWOOD_TRY(check_onnxruntime_version(version));
  const OrtApi* api = base->GetApi(ort::kApiVersion);
  if (api == nullptr) {
    return Status(Code::kUnsupported, std::string("ONNX Runtime ") + version +
                                          " does not offer interface version " +
                                          std::to_string(ort::kApiVersion));
  }
  return api;
}

}  // namespace sapwood
