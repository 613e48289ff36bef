// The entry of libsapwood_executorch.so, and loading it.
#pragma once

#include <cstddef>
#include <memory>
#include <string>

#include "base/status.h"
#include "memory/kv_store.h"
#include "model/bundle.h"
#include "model/executorch.h"
#include "model/model.h"

namespace sapwood {

// What the library offers. C++ objects cross its border, so it must come from the same build.
struct ExecutorchEntry {
  const char* version;  // SAPWOOD_VERSION
  size_t layout;        // kExecutorchLayout
  Result<std::unique_ptr<Model>> (*open)(std::shared_ptr<const Bundle> bundle,
                                         const ExecutorchOptions& options);
};

// Differs between builds whose objects differ in size.
inline constexpr size_t kExecutorchLayout =
    ((sizeof(Bundle) * 31 + sizeof(RowBatch)) * 31 + sizeof(KvStore)) * 31 + sizeof(ModelSpec);

inline constexpr const char* kExecutorchEntry = "sapwood_executorch_entry";

// Loads ExecuTorch's runtime and our library. Both stay until the process ends: ExecuTorch keeps
// pointers to our operators.
Result<const ExecutorchEntry*> load_executorch(const ExecutorchOptions& options);

// Loads another of the wheel's libraries, such as "libexecutorch_backend_xnnpack.so", once.
Status load_executorch_part(const std::string& runtime, const char* name);

}  // namespace sapwood
