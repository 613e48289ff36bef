#include "hardware_buffer_shim.h"

#include <android/hardware_buffer.h>
#include <sys/mman.h>

#include <cerrno>
#include <cstring>

using sapwood::hardware_buffer_shim;

struct AHardwareBuffer {
  void* bytes;
  void* elsewhere;  // the same bytes again
  size_t size;
  bool locked = false;
  bool moved = false;
};

namespace sapwood {

HardwareBufferShim& hardware_buffer_shim() {
  static HardwareBufferShim shim;
  return shim;
}

}  // namespace sapwood

int AHardwareBuffer_allocate(const AHardwareBuffer_Desc* description, AHardwareBuffer** out) {
  sapwood::HardwareBufferShim& shim = hardware_buffer_shim();
  if (shim.allocate_error != 0) return shim.allocate_error;
  if (description->format != AHARDWAREBUFFER_FORMAT_BLOB || description->height != 1 ||
      description->layers != 1 || description->width == 0 || description->rfu0 != 0 ||
      description->rfu1 != 0) {
    return -EINVAL;
  }
  const size_t size = description->width;
  void* bytes = ::mmap(nullptr, size, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS, -1, 0);
  if (bytes == MAP_FAILED) return -errno;
  // Zero bytes of a shared mapping are a second one of the same memory.
  void* elsewhere = ::mremap(bytes, 0, size, MREMAP_MAYMOVE);
  if (elsewhere == MAP_FAILED) {
    const int error = errno;
    ::munmap(bytes, size);
    return -error;
  }
  if (shim.dirt != 0) std::memset(bytes, shim.dirt, size);
  *out = new AHardwareBuffer{bytes, elsewhere, size};
  ++shim.live;
  return 0;
}

void AHardwareBuffer_release(AHardwareBuffer* buffer) {
  sapwood::HardwareBufferShim& shim = hardware_buffer_shim();
  if (buffer->locked) ++shim.misuses;
  ::munmap(buffer->bytes, buffer->size);
  ::munmap(buffer->elsewhere, buffer->size);
  delete buffer;
  --shim.live;
}

int AHardwareBuffer_lock(AHardwareBuffer* buffer, uint64_t usage, int32_t fence, const ARect* rect,
                         void** out_address) {
  sapwood::HardwareBufferShim& shim = hardware_buffer_shim();
  if (shim.lock_error != 0) return shim.lock_error;
  const bool for_processor =
      (usage & (AHARDWAREBUFFER_USAGE_CPU_READ_OFTEN | AHARDWAREBUFFER_USAGE_CPU_WRITE_OFTEN)) != 0;
  if (buffer->locked || !for_processor || fence != -1 || rect != nullptr) {
    ++shim.misuses;
    return -EINVAL;
  }
  buffer->locked = true;
  ++shim.locked;
  ++shim.locks;
  if (shim.moves) buffer->moved = !buffer->moved;
  *out_address = buffer->moved ? buffer->elsewhere : buffer->bytes;
  return 0;
}

int AHardwareBuffer_unlock(AHardwareBuffer* buffer, int32_t* fence) {
  sapwood::HardwareBufferShim& shim = hardware_buffer_shim();
  if (!buffer->locked || fence != nullptr) {
    ++shim.misuses;
    return -EINVAL;
  }
  buffer->locked = false;
  --shim.locked;
  return 0;
}
