// Memory that stages, processes and devices share: one block, handed out in page-aligned pieces.
//
//   Result<UnifiedPool> pool = UnifiedPool::create(best_memory_kind(), 64 << 20);
//   Result<TensorHandle> logits = pool->allocate(rows * vocabulary * sizeof(float));
//   TensorHandle for_the_sampler = logits.value();       // a second reference to the same bytes
//   Result<CpuAccessScope> access = for_the_sampler.cpu_access(CpuAccess::kRead);
//   ... read for_the_sampler.data() ...
//   SAPWOOD_TRY(access->end());
//
// A device imports the pool once (by descriptor, or by address) and binds a handle's `offset()`.
// Making a pool is the only system call in release builds: allocating, sharing and releasing are a
// few atomic operations each, from any thread.
#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <utility>

#include "base/status.h"
#include "memory/memory_block.h"

namespace sapwood {

namespace memory_detail {
struct PoolState;
struct Piece;
}  // namespace memory_detail

class CpuAccessScope;

// One reference to a piece of a pool. Copies count; when the last one goes, the bytes are free
// again. A handle keeps the pool's memory alive, even after the pool itself is gone.
class TensorHandle {
 public:
  TensorHandle() = default;
  ~TensorHandle() { release(); }
  TensorHandle(const TensorHandle& other) noexcept;
  TensorHandle(TensorHandle&& other) noexcept { swap(other); }
  TensorHandle& operator=(TensorHandle other) noexcept {
    swap(other);
    return *this;
  }

  explicit operator bool() const { return state_ != nullptr; }
  std::byte* data() const { return data_; }  // page-aligned
  size_t bytes() const { return bytes_; }    // as they were asked for
  size_t offset() const;                     // from the start of the pool's memory
  int fd() const;                            // the pool's; -1 where there is none
  MemoryKind kind() const;
  int references() const;  // how many handles share the bytes; 0 for an empty handle

  // Lets this reference go; the handle is empty afterwards.
  void release();

  // Brackets the processor's reading or writing, so that devices see it and it sees them.
  Result<CpuAccessScope> cpu_access(CpuAccess access) const;

 private:
  friend class UnifiedPool;
  friend class CpuAccessScope;
  TensorHandle(memory_detail::PoolState* state, memory_detail::Piece* piece, std::byte* data,
               size_t bytes)
      : state_(state), piece_(piece), data_(data), bytes_(bytes) {}
  void swap(TensorHandle& other) noexcept;

  memory_detail::PoolState* state_ = nullptr;
  memory_detail::Piece* piece_ = nullptr;
  std::byte* data_ = nullptr;
  size_t bytes_ = 0;
};

// Ends the access when it goes; end() does so too and says whether it worked.
class CpuAccessScope {
 public:
  ~CpuAccessScope();
  CpuAccessScope(CpuAccessScope&&) noexcept = default;
  CpuAccessScope& operator=(CpuAccessScope&& other) noexcept {
    std::swap(handle_, other.handle_);
    std::swap(access_, other.access_);
    return *this;
  }
  Status end();

 private:
  friend class TensorHandle;
  CpuAccessScope(TensorHandle handle, CpuAccess access)
      : handle_(std::move(handle)), access_(access) {}

  TensorHandle handle_;  // empty: ended
  CpuAccess access_;
};

struct PoolOptions {
  // A page without rights behind every piece, and none for pieces that are free, so that running
  // over a piece's end or using it after its release faults. Costs a system call for each.
  bool guard_pages =
#ifdef NDEBUG
      false;
#else
      true;
#endif
  // Host memory in huge pages where the system has them: all of it is there from the first touch of
  // each 2 MiB.
  bool huge_pages = false;
};

class UnifiedPool {
 public:
  // `bytes`, rounded up to pages. Errors as MemoryBlock::create has them.
  static Result<UnifiedPool> create(MemoryKind kind, size_t bytes, PoolOptions options = {});
  // Memory that came from elsewhere; the checks of MemoryBlock::import. What is in it stays.
  static Result<UnifiedPool> import(int fd, size_t bytes, PoolOptions options = {});

  UnifiedPool(UnifiedPool&& other) noexcept : state_(std::exchange(other.state_, nullptr)) {}
  UnifiedPool& operator=(UnifiedPool&& other) noexcept {
    std::swap(state_, other.state_);
    return *this;
  }
  UnifiedPool(const UnifiedPool&) = delete;
  UnifiedPool& operator=(const UnifiedPool&) = delete;
  ~UnifiedPool();

  // `bytes` (at least 1) in a run of pages; kExhausted when there is no such run. They are zero in
  // a new pool, and hold what their last owner left when they are handed out again.
  Result<TensorHandle> allocate(size_t bytes);

  // A new descriptor of all of the pool's memory, the caller's to close; kUnsupported where the
  // kind has none. Pieces are found at their offset().
  Result<int> export_fd() const;

  const MemoryBlock& block() const;
  MemoryKind kind() const { return block().kind(); }
  size_t bytes() const { return block().bytes(); }
  size_t available_bytes() const;  // in pages that nobody has; perhaps not in one run
  size_t peak_bytes() const;       // the most that was ever taken at once, guards included

 private:
  explicit UnifiedPool(memory_detail::PoolState* state) : state_(state) {}
  static Result<UnifiedPool> over(Result<MemoryBlock> block, PoolOptions options);

  memory_detail::PoolState* state_;
};

}  // namespace sapwood
