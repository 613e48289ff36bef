// An AHardwareBuffer of plain bytes: memory of an Android phone (8.0 and later, API level 26) that
// its processor, GPU and other units share. Compiled for Android only.
//
// It stays locked for the processor as long as it lives, so that its bytes have one address. The
// system maps it, so there are no guard pages around it.
#pragma once

#include <cstddef>

#include "base/status.h"

struct AHardwareBuffer;

namespace sapwood {

struct LockedHardwareBuffer {
  AHardwareBuffer* buffer;
  std::byte* data;  // zero at first
};

// kExhausted where it is too large or there is no memory, kUnsupported where the phone makes none
// of plain bytes.
Result<LockedHardwareBuffer> make_hardware_buffer(size_t bytes);

// What the processor wrote is seen by the other units from here on, and what they wrote by it: it
// is unlocked and locked again. No other thread may access the bytes meanwhile. kInternal where it
// would lie elsewhere afterwards.
Status sync_hardware_buffer(const LockedHardwareBuffer& locked);

void release_hardware_buffer(AHardwareBuffer* buffer);

}  // namespace sapwood
