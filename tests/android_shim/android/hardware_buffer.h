// What the NDK's header of this name declares of AHardwareBuffer, as far as Sapwood uses it: names,
// types and values of the public API (level 26). Behind it stands hardware_buffer_shim.cc, so that
// a desktop runs the code that a phone will.
#pragma once

#include <cstdint>

extern "C" {

typedef struct AHardwareBuffer AHardwareBuffer;

enum { AHARDWAREBUFFER_FORMAT_BLOB = 0x21 };  // width bytes in one row

enum : uint64_t {
  AHARDWAREBUFFER_USAGE_CPU_READ_OFTEN = 3,
  AHARDWAREBUFFER_USAGE_CPU_WRITE_OFTEN = 3 << 4,
  AHARDWAREBUFFER_USAGE_GPU_DATA_BUFFER = 1 << 24,
};

typedef struct AHardwareBuffer_Desc {
  uint32_t width;
  uint32_t height;
  uint32_t layers;
  uint32_t format;
  uint64_t usage;
  uint32_t stride;  // in pixels; ignored by allocate
  uint32_t rfu0;    // zero
  uint64_t rfu1;    // zero
} AHardwareBuffer_Desc;

typedef struct ARect {
  int32_t left, top, right, bottom;
} ARect;

int AHardwareBuffer_allocate(const AHardwareBuffer_Desc* description, AHardwareBuffer** out);
void AHardwareBuffer_release(AHardwareBuffer* buffer);
int AHardwareBuffer_lock(AHardwareBuffer* buffer, uint64_t usage, int32_t fence, const ARect* rect,
                         void** out_address);
int AHardwareBuffer_unlock(AHardwareBuffer* buffer, int32_t* fence);
}
