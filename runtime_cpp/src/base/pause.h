// What a thread does between two looks at something that another one will change soon.
#pragma once

#if defined(__x86_64__)
#include <immintrin.h>
#endif

namespace sapwood {

inline void pause() {
#if defined(__x86_64__)
  _mm_pause();
#elif defined(__aarch64__)
  asm volatile("isb");
#endif
}

}  // namespace sapwood
