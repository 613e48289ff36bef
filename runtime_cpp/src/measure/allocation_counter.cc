#include "measure/allocation_counter.h"

#include <atomic>
#include <cstddef>
#include <cstdlib>
#include <new>

#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
#define SAPWOOD_SANITIZED 1
#elif defined(__has_feature)
#if __has_feature(address_sanitizer) || __has_feature(thread_sanitizer)
#define SAPWOOD_SANITIZED 1
#endif
#endif

namespace {
std::atomic<uint64_t> count{0};
thread_local int64_t until_failure = -1;
thread_local bool failed = false;

[[maybe_unused]] void count_one() {
  count.fetch_add(1, std::memory_order_relaxed);
  if (until_failure < 0 || until_failure-- > 0) return;
  failed = true;
  throw std::bad_alloc();
}
}  // namespace

#ifndef SAPWOOD_SANITIZED

void* operator new(std::size_t bytes) {
  count_one();
  if (void* memory = std::malloc(bytes == 0 ? 1 : bytes)) return memory;
  throw std::bad_alloc();
}

void* operator new(std::size_t bytes, std::align_val_t alignment) {
  count_one();
  const auto align = static_cast<std::size_t>(alignment);
  if (void* memory = std::aligned_alloc(align, (bytes + align - 1) / align * align)) return memory;
  throw std::bad_alloc();
}

void operator delete(void* memory) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::align_val_t) noexcept { std::free(memory); }
void operator delete(void* memory, std::size_t, std::align_val_t) noexcept { std::free(memory); }

#endif

namespace sapwood {

uint64_t allocations() { return count.load(std::memory_order_relaxed); }

void fail_allocation(int64_t after) {
  until_failure = after;
  failed = false;
}

bool allocation_failed() { return failed; }

bool counts_allocations() {
#ifdef SAPWOOD_SANITIZED
  return false;
#else
  return true;
#endif
}

}  // namespace sapwood
