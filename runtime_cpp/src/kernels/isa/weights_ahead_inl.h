// Asking for weights before they are needed. Included once per instruction set.
#pragma once

#include <cstddef>
#include <cstdint>

namespace sapwood::SAPWOOD_ISA {

// Memory that a later call will read, asked for a little at a time while this one computes.
struct Ahead {
  const uint8_t* next;
  size_t lines_per_part;

  void step() {
    for (size_t line = 0; line < lines_per_part; ++line, next += 64) prefetch(next);
  }
};

}  // namespace sapwood::SAPWOOD_ISA
