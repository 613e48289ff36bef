#include "memory/pooled_floats.h"

#include <new>
#include <utility>

#include "memory/unified_pool.h"

namespace sapwood {

std::shared_ptr<float[]> pooled_floats(size_t count) {
  if (count == 0) return nullptr;
  const size_t bytes = count * sizeof(float);
  Result<UnifiedPool> pool = UnifiedPool::create(MemoryKind::kHost, bytes, {.guard_pages = false});
  Result<TensorHandle> memory = pool.ok() ? pool->allocate(bytes) : pool.status();
  if (!memory.ok()) throw std::bad_alloc();
  float* const numbers = reinterpret_cast<float*>(memory->data());
  return {numbers, [piece = std::move(memory).value()](float*) mutable { piece.release(); }};
}

}  // namespace sapwood
