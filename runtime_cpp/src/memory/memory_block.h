// One mapping of memory that other processes and devices may share.
//
// A block lies between two guard pages, so that running off either end faults instead of meeting
// somebody else's memory. It is zero at first. UnifiedPool shares it out.
#pragma once

#include <cstddef>

#include "base/descriptor.h"
#include "base/status.h"
#include "memory/memory_kind.h"

namespace sapwood {

enum class CpuAccess { kRead = 1, kWrite = 2, kReadWrite = 3 };

class MemoryBlock {
 public:
  MemoryBlock() = default;
  ~MemoryBlock();
  MemoryBlock(MemoryBlock&& other) noexcept;
  MemoryBlock& operator=(MemoryBlock&& other) noexcept;
  MemoryBlock(const MemoryBlock&) = delete;
  MemoryBlock& operator=(const MemoryBlock&) = delete;

  // `bytes`, rounded up to whole pages. kUnsupported where this machine lacks the kind, kExhausted
  // where memory, address space or descriptors have run out, each with a line that says so.
  static Result<MemoryBlock> create(MemoryKind kind, size_t bytes);

  // Maps memory that came from elsewhere: a dma-buf, or a memfd that can no longer shrink (as one
  // that is cut short under a reader raises SIGBUS in it). `fd` stays the caller's.
  // kInvalidArgument for anything else, for less than `bytes` (at least 1), or without the right to
  // write.
  static Result<MemoryBlock> import(int fd, size_t bytes);

  MemoryKind kind() const { return kind_; }
  std::byte* data() const { return data_; }  // page-aligned; on 2 MiB where there are as many bytes
  size_t bytes() const { return bytes_; }    // a multiple of the page size
  bool is_dma_buf() const {
    return kind_ == MemoryKind::kDmaHeap || kind_ == MemoryKind::kUdmabuf ||
           kind_ == MemoryKind::kDmaBuf;
  }

  // The block's own descriptor; -1 where there is none (host, hardware_buffer).
  int fd() const { return file_.get(); }
  // A new descriptor of the same memory, to be closed by the caller; closed on exec.
  Result<int> export_fd() const;

  // What the processor does between the two is seen by devices afterwards, and the other way round:
  // DMA_BUF_IOCTL_SYNC on a dma-buf, nothing on other memory.
  Status begin_cpu_access(CpuAccess access) const;
  Status end_cpu_access(CpuAccess access) const;

 private:
  // Maps `file`, or anonymous memory where it holds none, between guard pages.
  static Result<MemoryBlock> map(MemoryKind kind, Descriptor file, size_t bytes);
#ifdef __ANDROID__
  static Result<MemoryBlock> create_hardware_buffer(size_t bytes);
#endif

  MemoryKind kind_ = MemoryKind::kHost;
  Descriptor file_;
  std::byte* data_ = nullptr;
  size_t bytes_ = 0;
  void* reservation_ = nullptr;  // the mapping with its guards
  size_t reserved_ = 0;
  void* hardware_buffer_ = nullptr;  // AHardwareBuffer*, Android only
};

// Bytes of a page of this system.
size_t memory_page_bytes();

}  // namespace sapwood
