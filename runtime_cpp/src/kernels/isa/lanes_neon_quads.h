// dot_quads (lanes_scalar.h) on NEON: four lanes of four bytes a register, by the dot product of
// whatever the processor has: dot_four(sum, codes, x) of the file that includes this one.
#pragma once

#include "kernels/isa/lanes_neon.h"

namespace sapwood::SAPWOOD_ISA {

enum class Quads { kBiased, kSigned };

template <int kRows, int kPanels, int kStep, Quads kQuads>
[[gnu::always_inline]] inline void dot_quads(const uint8_t* codes, size_t panel_stride,
                                             size_t quad_stride, const int8_t* x, size_t x_stride,
                                             int quads, IntLanes (*sums)[kPanels]) {
#pragma GCC unroll 1
  for (int quad = 0; quad < quads; ++quad, codes += quad_stride, x += 4) {
#pragma GCC unroll 4
    for (int p = 0; p < kPanels; ++p) {
      int8x16_t w[4];
#pragma GCC unroll 4
      for (int i = 0; i < 4; ++i) {
        const uint8x16_t bytes = vld1q_u8(codes + p * panel_stride + 16 * i);
        w[i] = vreinterpretq_s8_u8(kQuads == Quads::kBiased ? veorq_u8(bytes, vdupq_n_u8(0x80))
                                                            : bytes);
      }
#pragma GCC unroll 6
      for (int r = 0; r < kRows; ++r) {
        int32_t bytes;
        std::memcpy(&bytes, x + r * x_stride, sizeof bytes);
        const int8x16_t four = vreinterpretq_s8_s32(vdupq_n_s32(bytes));
#pragma GCC unroll 4
        for (int i = 0; i < 4; ++i) sums[r][p].v[i] = dot_four(sums[r][p].v[i], w[i], four);
      }
    }
  }
}
inline constexpr int kQuadBias = 0;

}  // namespace sapwood::SAPWOOD_ISA
