// What libsapwood_executorch.so shows: its entry for our host. Loading it registers the operators,
// which is all that another program over ExecuTorch needs.
#include "model/executorch_library.h"
#include "operators/executorch/model.h"
#include "operators/executorch/operator.h"

namespace {

[[gnu::constructor]] void register_when_loaded() { sapwood::executorch::register_operators(); }

constexpr sapwood::ExecutorchEntry kEntry = {SAPWOOD_VERSION, sapwood::kExecutorchLayout,
                                             &sapwood::executorch::open_model};

}  // namespace

extern "C" __attribute__((visibility("default"))) const sapwood::ExecutorchEntry*
sapwood_executorch_entry() {
  return &kEntry;
}
