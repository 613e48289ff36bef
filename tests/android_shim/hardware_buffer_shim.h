// A stand-in for the phone's AHardwareBuffer: what it saw, and what it is told to do wrong.
#pragma once

namespace sapwood {

struct HardwareBufferShim {
  int live = 0;            // allocated and not released
  int locked = 0;          // of these
  int locks = 0;           // so far
  int misuses = 0;         // calls that the NDK forbids: two locks, an unlock or a release too many
  int allocate_error = 0;  // returned by the next calls; 0: they succeed
  int lock_error = 0;      // likewise
  bool moves = false;      // a buffer lies elsewhere each time it is locked
  unsigned char dirt = 0;  // what new buffers are full of
};
HardwareBufferShim& hardware_buffer_shim();

}  // namespace sapwood
