#include "operators/executorch/xnnpack.h"

#include <dlfcn.h>

#include <cstdint>

#include "model/executorch_library.h"

namespace sapwood::executorch {
namespace {

// ThreadPool* executorch::extension::threadpool::get_threadpool(), and
// bool ThreadPool::_unsafe_reset_threadpool(uint32_t). The wheel has them and no header for them.
constexpr const char* kGetThreadpool = "_ZN10executorch9extension10threadpool14get_threadpoolEv";
constexpr const char* kResetThreadpool =
    "_ZN10executorch9extension10threadpool10ThreadPool24_unsafe_reset_threadpoolEj";

}  // namespace

Status load_xnnpack(const std::string& runtime, int threads) {
  for (const char* part : {"libexecutorch_threadpool.so", "libexecutorch_kernels_optimized.so",
                           "libexecutorch_backend_xnnpack.so"}) {
    SAPWOOD_TRY(load_executorch_part(runtime, part));
  }
  const auto get = reinterpret_cast<void* (*)()>(dlsym(RTLD_DEFAULT, kGetThreadpool));
  const auto reset =
      reinterpret_cast<bool (*)(void*, uint32_t)>(dlsym(RTLD_DEFAULT, kResetThreadpool));
  void* pool = get != nullptr ? get() : nullptr;
  if (pool == nullptr || reset == nullptr || !reset(pool, static_cast<uint32_t>(threads))) {
    return Status(Code::kUnsupported,
                  "ExecuTorch's thread pool cannot be set to " + std::to_string(threads) +
                      " threads; install the version that is known to work (pip: "
                      "executorch==1.5.1)");
  }
  return Status::okay();
}

}  // namespace sapwood::executorch
