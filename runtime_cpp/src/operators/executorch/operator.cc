#include "operators/executorch/operator.h"

#include <executorch/runtime/kernel/kernel_runtime_context.h>
#include <executorch/runtime/platform/log.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <exception>
#include <thread>

namespace sapwood::executorch {
namespace {

using ::executorch::runtime::Error;
using ::executorch::runtime::Kernel;
using ::executorch::runtime::KernelRuntimeContext;
using ::executorch::runtime::Span;
using operators::Resources;

constexpr int kMostSharedThreads = 4;

thread_local Resources* used = nullptr;

Resources& resources() {
  if (used != nullptr) return *used;
  // For runs outside our host, such as ExecuTorch's Python runtime. Made when first needed.
  static const std::shared_ptr<Resources> shared = operators::shared_resources(
      std::clamp(static_cast<int>(std::thread::hardware_concurrency()), 1, kMostSharedThreads));
  return *shared;
}

Status computed(const OperatorDefinition& definition, Span<EValue*> stack) {
  if (stack.size() < definition.arguments.size()) {
    return Status(Code::kInvalidArgument,
                  "the graph gives it " + std::to_string(stack.size()) + " values, not " +
                      std::to_string(definition.arguments.size()) + ": export it again");
  }
  try {
    Resources& shared = resources();
    const std::lock_guard lock(shared.mutex());
    Arguments arguments(stack, definition.arguments);
    return definition.compute(arguments, shared);
  } catch (const std::exception& error) {  // no memory: no exception may leave a kernel
    return Status(Code::kExhausted, error.what());
  }
}

template <const OperatorDefinition& Definition>
void run(KernelRuntimeContext& context, Span<EValue*> stack) {
  const Status status = computed(Definition, stack);
  if (status.ok()) return;
  ET_LOG(Error, "%s: %s", Definition.name, status.message().c_str());
  context.fail(Error::InvalidArgument);
}

template <const OperatorDefinition& Definition>
Kernel kernel() {
  return Kernel(Definition.name, &run<Definition>);
}

}  // namespace

UsedResources::UsedResources(Resources& resources) : before_(used) { used = &resources; }
UsedResources::~UsedResources() { used = before_; }

void register_operators() {
  // Looking one up by name would log that it is not there.
  for (const Kernel& known : ::executorch::runtime::get_registered_kernels()) {
    if (std::strcmp(known.name_, kDecoderLayer.name) == 0) return;
  }
  // ExecuTorch copies the entries and keeps the names, which are literals.
  const std::array kernels = {
      kernel<kTokenEmbedding>(), kernel<kRotaryTable>(),      kernel<kRotaryEmbedding>(),
      kernel<kRmsNorm>(),        kernel<kTreeAttention>(),    kernel<kDecoderLayer>(),
      kernel<kOutputHead>(),     kernel<kDynamicTreePrune>(), kernel<kBlockSparseVerify>()};
  (void)::executorch::runtime::register_kernels({kernels.data(), kernels.size()});
}

}  // namespace sapwood::executorch
