#include "memory/unified_pool.h"

#include <sys/mman.h>

#include <cerrno>
#include <limits>
#include <memory>
#include <string>

#include "memory/kv_slot_bitmap.h"
#include "memory/shared_memory_files.h"

namespace sapwood {
namespace memory_detail {

// A piece has the number of its first page.
struct Piece {
  std::atomic<int> references{0};
  int pages = 0;  // guard included
};

struct PoolState {
  PoolState(MemoryBlock the_block, PoolOptions the_options)
      : block(std::move(the_block)),
        options(the_options),
        pages(static_cast<int>(block.bytes() / memory_page_bytes())),
        pieces(std::make_unique<Piece[]>(static_cast<size_t>(pages.slots()))) {}

  std::byte* page(int number) const {
    return block.data() + static_cast<size_t>(number) * memory_page_bytes();
  }

  MemoryBlock block;
  PoolOptions options;
  KvSlotBitmap pages;  // one slot a page
  std::unique_ptr<Piece[]> pieces;
  std::atomic<int> owners{1};  // the pool, and every piece that is out
};

namespace {

void leave(PoolState* state) {
  if (state->owners.fetch_sub(1, std::memory_order_acq_rel) == 1) delete state;
}

void free_piece(PoolState* state, Piece* piece) {
  const int first = static_cast<int>(piece - state->pieces.get());
  if (state->options.guard_pages) {
    // Without it use after release would go unseen, and nothing else.
    ::mprotect(state->page(first), static_cast<size_t>(piece->pages) * memory_page_bytes(),
               PROT_NONE);
  }
  const Status freed = state->pages.free_run(first, piece->pages);
  assert(freed.ok() && "a piece's pages are its own");
  (void)freed;
  leave(state);
}

}  // namespace
}  // namespace memory_detail

using memory_detail::Piece;
using memory_detail::PoolState;

// ---- handles ------------------------------------------------------------------------------------

TensorHandle::TensorHandle(const TensorHandle& other) noexcept
    : state_(other.state_), piece_(other.piece_), data_(other.data_), bytes_(other.bytes_) {
  // Whoever copies holds a reference, so the count cannot reach zero meanwhile.
  if (piece_ != nullptr) piece_->references.fetch_add(1, std::memory_order_relaxed);
}

void TensorHandle::swap(TensorHandle& other) noexcept {
  std::swap(state_, other.state_);
  std::swap(piece_, other.piece_);
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
}

void TensorHandle::release() {
  if (piece_ == nullptr) return;
  PoolState* state = std::exchange(state_, nullptr);
  Piece* piece = std::exchange(piece_, nullptr);
  data_ = nullptr;
  bytes_ = 0;
  // What every sharer wrote happens before the bytes go to somebody else.
  if (piece->references.fetch_sub(1, std::memory_order_acq_rel) == 1) {
    memory_detail::free_piece(state, piece);
  }
}

size_t TensorHandle::offset() const {
  return state_ == nullptr ? 0 : static_cast<size_t>(data_ - state_->block.data());
}

int TensorHandle::fd() const { return state_ == nullptr ? -1 : state_->block.fd(); }

MemoryKind TensorHandle::kind() const {
  return state_ == nullptr ? MemoryKind::kHost : state_->block.kind();
}

int TensorHandle::references() const {
  return piece_ == nullptr ? 0 : piece_->references.load(std::memory_order_relaxed);
}

Result<CpuAccessScope> TensorHandle::cpu_access(CpuAccess access) const {
  if (state_ == nullptr) {
    return Status(Code::kInvalidArgument, "an empty tensor handle has no bytes to access");
  }
  SAPWOOD_TRY(state_->block.begin_cpu_access(access));
  return CpuAccessScope(*this, access);
}

CpuAccessScope::~CpuAccessScope() { (void)end(); }

Status CpuAccessScope::end() {
  if (!handle_) return Status::okay();
  const Status ended = handle_.state_->block.end_cpu_access(access_);
  handle_.release();
  return ended;
}

// ---- the pool -----------------------------------------------------------------------------------

Result<UnifiedPool> UnifiedPool::create(MemoryKind kind, size_t bytes, PoolOptions options) {
  return over(MemoryBlock::create(kind, bytes), options);
}

Result<UnifiedPool> UnifiedPool::import(int fd, size_t bytes, PoolOptions options) {
  return over(MemoryBlock::import(fd, bytes), options);
}

Result<UnifiedPool> UnifiedPool::over(Result<MemoryBlock> block, PoolOptions options) {
  if (!block.ok()) return block.status();
  if (block->bytes() / memory_page_bytes() > std::numeric_limits<int>::max()) {
    return Status(Code::kInvalidArgument,
                  "a pool of " + std::to_string(block->bytes()) + " bytes has too many pages");
  }
#ifdef MADV_HUGEPAGE
  // Refused or ignored where the system has no huge ones.
  if (options.huge_pages && block->kind() == MemoryKind::kHost) {
    ::madvise(block->data(), block->bytes(), MADV_HUGEPAGE);
  }
#endif
  if (options.guard_pages && ::mprotect(block->data(), block->bytes(), PROT_NONE) != 0) {
    return memory_error("guard pages", errno);
  }
  return UnifiedPool(new PoolState(std::move(block).value(), options));
}

UnifiedPool::~UnifiedPool() {
  if (state_ != nullptr) memory_detail::leave(state_);
}

Result<TensorHandle> UnifiedPool::allocate(size_t bytes) {
  if (bytes == 0) return Status(Code::kInvalidArgument, "a tensor needs at least one byte");
  const size_t page = memory_page_bytes();
  const size_t pages = (bytes - 1) / page + 1 + (state_->options.guard_pages ? 1 : 0);
  const int first = pages <= static_cast<size_t>(state_->pages.slots())
                        ? state_->pages.allocate_run(static_cast<int>(pages))
                        : -1;
  if (first < 0) {
    return Status(Code::kExhausted, "the pool has no " + std::to_string(bytes) +
                                        " bytes in one run; of " + std::to_string(this->bytes()) +
                                        " bytes " + std::to_string(available_bytes()) +
                                        " are free");
  }
  if (state_->options.guard_pages &&
      ::mprotect(state_->page(first), (pages - 1) * page, PROT_READ | PROT_WRITE) != 0) {
    const int error = errno;
    SAPWOOD_TRY(state_->pages.free_run(first, static_cast<int>(pages)));
    return memory_error("guard pages", error);
  }
  state_->owners.fetch_add(1, std::memory_order_relaxed);
  Piece& piece = state_->pieces[static_cast<size_t>(first)];
  piece.pages = static_cast<int>(pages);
  piece.references.store(1, std::memory_order_relaxed);
  return TensorHandle(state_, &piece, state_->page(first), bytes);
}

Result<int> UnifiedPool::export_fd() const { return state_->block.export_fd(); }

const MemoryBlock& UnifiedPool::block() const { return state_->block; }

size_t UnifiedPool::available_bytes() const {
  return static_cast<size_t>(state_->pages.available()) * memory_page_bytes();
}

size_t UnifiedPool::peak_bytes() const {
  return static_cast<size_t>(state_->pages.peak()) * memory_page_bytes();
}

}  // namespace sapwood
