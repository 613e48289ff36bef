#include "memory/memory_block.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <string>
#include <utility>

#include "memory/shared_memory_files.h"
#ifdef __ANDROID__
#include "memory/hardware_buffer.h"
#endif

namespace sapwood {
namespace {

// Where huge pages begin and end on the systems that have them.
constexpr size_t kHugePageBytes = size_t{2} << 20;

Status too_large(size_t bytes) {
  return Status(Code::kExhausted, std::to_string(bytes) + " bytes do not fit into any memory");
}

// Whole pages; nothing where that overflows.
Result<size_t> whole_pages(size_t bytes) {
  const size_t page = memory_page_bytes();
  size_t rounded = 0;
  if (__builtin_add_overflow(bytes, page - 1, &rounded)) return too_large(bytes);
  return rounded / page * page;
}

}  // namespace

size_t memory_page_bytes() {
  static const size_t bytes = static_cast<size_t>(sysconf(_SC_PAGESIZE));
  return bytes;
}

MemoryBlock::MemoryBlock(MemoryBlock&& other) noexcept { *this = std::move(other); }

MemoryBlock& MemoryBlock::operator=(MemoryBlock&& other) noexcept {
  std::swap(kind_, other.kind_);
  std::swap(file_, other.file_);
  std::swap(data_, other.data_);
  std::swap(bytes_, other.bytes_);
  std::swap(reservation_, other.reservation_);
  std::swap(reserved_, other.reserved_);
  std::swap(hardware_buffer_, other.hardware_buffer_);
  return *this;
}

#ifndef __ANDROID__  // there it is in hardware_buffer.cc, which has more to give back
MemoryBlock::~MemoryBlock() {
  if (reservation_ != nullptr) ::munmap(reservation_, reserved_);
}
#endif

Result<MemoryBlock> MemoryBlock::create(MemoryKind kind, size_t bytes) {
  if (bytes == 0) return Status(Code::kInvalidArgument, "a memory block needs at least one byte");
  const Result<size_t> rounded = whole_pages(bytes);
  if (!rounded.ok()) return rounded.status();
  const auto mapped = [&](Result<Descriptor> file) -> Result<MemoryBlock> {
    if (!file.ok()) return file.status();
    return map(kind, std::move(file).value(), rounded.value());
  };
  switch (kind) {
    case MemoryKind::kDmaHeap:
      return mapped(make_dma_heap(rounded.value()));
    case MemoryKind::kUdmabuf:
      return mapped(make_udmabuf(rounded.value()));
    case MemoryKind::kMemfd:
      return mapped(make_memfd(rounded.value()));
    case MemoryKind::kHost:
      return map(kind, Descriptor(), rounded.value());
    case MemoryKind::kHardwareBuffer:
#ifdef __ANDROID__
      return create_hardware_buffer(rounded.value());
#else
      return Status(Code::kUnsupported, "hardware_buffer: only Android has them");
#endif
    case MemoryKind::kDmaBuf:
      break;
  }
  return Status(Code::kInvalidArgument,
                "dma_buf memory is made by others and only imported here; ask for dma_heap or "
                "udmabuf");
}

Result<MemoryBlock> MemoryBlock::import(int fd, size_t bytes) {
  if (bytes == 0) return Status(Code::kInvalidArgument, "a memory block needs at least one byte");
  const Result<size_t> rounded = whole_pages(bytes);
  if (!rounded.ok()) return rounded.status();
  const Result<MemoryKind> kind = check_shared_memory(fd, rounded.value());
  if (!kind.ok()) return kind.status();
  Descriptor own(::fcntl(fd, F_DUPFD_CLOEXEC, 0));
  if (own.get() < 0) return memory_error("importing a descriptor", errno);
  return map(kind.value(), std::move(own), rounded.value());
}

Result<MemoryBlock> MemoryBlock::map(MemoryKind kind, Descriptor file, size_t bytes) {
  const size_t page = memory_page_bytes();
  const size_t alignment = bytes >= kHugePageBytes ? kHugePageBytes : page;
  MemoryBlock block;
  // The guards, and room to move the start to a multiple of the alignment. Address space only.
  if (__builtin_add_overflow(bytes, 2 * page + alignment, &block.reserved_)) {
    return too_large(bytes);
  }
  void* reservation = ::mmap(nullptr, block.reserved_, PROT_NONE,
                             MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  if (reservation == MAP_FAILED) return memory_error(memory_kind_name(kind), errno);
  block.reservation_ = reservation;
  const uintptr_t after_guard = reinterpret_cast<uintptr_t>(reservation) + page;
  const uintptr_t start = (after_guard + alignment - 1) / alignment * alignment;
  const bool anonymous = file.get() < 0;
  void* data =
      ::mmap(reinterpret_cast<void*>(start), bytes, PROT_READ | PROT_WRITE,
             MAP_FIXED | (anonymous ? MAP_PRIVATE | MAP_ANONYMOUS : MAP_SHARED), file.get(), 0);
  if (data == MAP_FAILED) return memory_error(memory_kind_name(kind), errno);
  block.kind_ = kind;
  block.file_ = std::move(file);
  block.data_ = static_cast<std::byte*>(data);
  block.bytes_ = bytes;
  return block;
}

Result<int> MemoryBlock::export_fd() const {
  if (fd() < 0) {
    return Status(Code::kUnsupported, std::string(memory_kind_name(kind_)) +
                                          " memory has no descriptor to export; make memfd, "
                                          "udmabuf or dma_heap memory for that");
  }
  const int copy = ::fcntl(fd(), F_DUPFD_CLOEXEC, 0);
  if (copy < 0) return memory_error("exporting a descriptor", errno);
  return copy;
}

Status MemoryBlock::begin_cpu_access(CpuAccess access) const {
#ifdef __ANDROID__
  if (kind_ == MemoryKind::kHardwareBuffer) {
    return sync_hardware_buffer({static_cast<AHardwareBuffer*>(hardware_buffer_), data_});
  }
#endif
  return is_dma_buf() ? sync_dma_buf(fd(), access, false) : Status::okay();
}

Status MemoryBlock::end_cpu_access(CpuAccess access) const {
#ifdef __ANDROID__
  if (kind_ == MemoryKind::kHardwareBuffer) return begin_cpu_access(access);
#endif
  return is_dma_buf() ? sync_dma_buf(fd(), access, true) : Status::okay();
}

}  // namespace sapwood
