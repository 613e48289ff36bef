#ifdef __ANDROID__
#include "memory/hardware_buffer.h"

#include <android/hardware_buffer.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstdint>
#include <cstring>
#include <limits>
#include <string>

#include "memory/memory_block.h"
#include "memory/shared_memory_files.h"

namespace sapwood {
namespace {

constexpr uint64_t kProcessorUsage =
    AHARDWAREBUFFER_USAGE_CPU_READ_OFTEN | AHARDWAREBUFFER_USAGE_CPU_WRITE_OFTEN;

// The NDK's functions return 0, or an error of errno's with a minus in front.
Status buffer_error(int result) { return memory_error("hardware_buffer", -result); }

Result<std::byte*> lock(AHardwareBuffer* buffer) {
  void* address = nullptr;
  const int result = AHardwareBuffer_lock(buffer, kProcessorUsage, -1, nullptr, &address);
  if (result != 0) return buffer_error(result);
  return static_cast<std::byte*>(address);
}

}  // namespace

Result<LockedHardwareBuffer> make_hardware_buffer(size_t bytes) {
  if (bytes > std::numeric_limits<uint32_t>::max()) return buffer_error(-EFBIG);
  AHardwareBuffer_Desc description = {};
  description.width = static_cast<uint32_t>(bytes);
  description.height = 1;
  description.layers = 1;
  description.format = AHARDWAREBUFFER_FORMAT_BLOB;
  description.usage = kProcessorUsage | AHARDWAREBUFFER_USAGE_GPU_DATA_BUFFER;
  AHardwareBuffer* buffer = nullptr;
  const int result = AHardwareBuffer_allocate(&description, &buffer);
  if (result != 0) return buffer_error(result);
  const Result<std::byte*> data = lock(buffer);
  if (!data.ok()) {
    AHardwareBuffer_release(buffer);
    return data.status();
  }
  std::memset(data.value(), 0, bytes);  // the system does not promise it
  return LockedHardwareBuffer{buffer, data.value()};
}

Status sync_hardware_buffer(const LockedHardwareBuffer& locked) {
  const int result = AHardwareBuffer_unlock(locked.buffer, nullptr);
  if (result != 0) return buffer_error(result);
  const Result<std::byte*> again = lock(locked.buffer);
  if (!again.ok()) return again.status();
  if (again.value() != locked.data) {
    return Status(Code::kInternal,
                  "hardware_buffer: this phone maps it anew each time; use dma_heap or memfd");
  }
  return Status::okay();
}

void release_hardware_buffer(AHardwareBuffer* buffer) {
  AHardwareBuffer_unlock(buffer, nullptr);
  AHardwareBuffer_release(buffer);
}

// ---- as a block ---------------------------------------------------------------------------------

MemoryBlock::~MemoryBlock() {
  if (hardware_buffer_ != nullptr) {
    release_hardware_buffer(static_cast<AHardwareBuffer*>(hardware_buffer_));
  }
  if (reservation_ != nullptr) ::munmap(reservation_, reserved_);
}

Result<MemoryBlock> MemoryBlock::create_hardware_buffer(size_t bytes) {
  const Result<LockedHardwareBuffer> made = make_hardware_buffer(bytes);
  if (!made.ok()) return made.status();
  MemoryBlock block;
  block.kind_ = MemoryKind::kHardwareBuffer;
  block.hardware_buffer_ = made.value().buffer;
  block.data_ = made.value().data;
  block.bytes_ = bytes;
  return block;
}

}  // namespace sapwood

#endif  // __ANDROID__
