// NEON with SMMLA: the products of two rows and two outputs over eight inputs an instruction. A row
// that has no partner takes SDOT, which every processor with SMMLA has.
#pragma once

#include "kernels/isa/lanes_neon.h"

namespace sapwood::SAPWOOD_ISA {

inline constexpr bool kMatrixProducts = true;

// 32 inputs of each row, in halves of 16: pairs of rows as two matrices of two rows by eight
// inputs.
template <int kRows>
struct RowCodes {
  int8x16_t pairs[2][kRows / 2 + 1][2];
  int8x16_t last[2];  // of an odd number of rows

  void load(const int8_t* codes, size_t stride) {
#pragma GCC unroll 2
    for (int half = 0; half < 2; ++half) {
#pragma GCC unroll 4
      for (int r = 0; r + 1 < kRows; r += 2) {
        const int64x2_t a = vreinterpretq_s64_s8(vld1q_s8(codes + r * stride + half * 16));
        const int64x2_t b = vreinterpretq_s64_s8(vld1q_s8(codes + (r + 1) * stride + half * 16));
        pairs[half][r / 2][0] = vreinterpretq_s8_s64(vzip1q_s64(a, b));
        pairs[half][r / 2][1] = vreinterpretq_s8_s64(vzip2q_s64(a, b));
      }
      if constexpr (kRows % 2 == 1) last[half] = vld1q_s8(codes + (kRows - 1) * stride + half * 16);
    }
  }
};

// Four quads of inputs of four outputs; pairs[i][0] and [1] are outputs 0, 1 and 2, 3 of inputs
// 8i .. 8i + 8.
template <int kRows>
struct OutputCodes {
  const int8x16_t* quads;
  int8x16_t pairs[2][2];

  explicit OutputCodes(const int8x16_t* quads) : quads(quads) {
    if constexpr (kRows > 1) {
#pragma GCC unroll 2
      for (int i = 0; i < 2; ++i) {
        const int32x4_t a = vreinterpretq_s32_s8(quads[2 * i]);
        const int32x4_t b = vreinterpretq_s32_s8(quads[2 * i + 1]);
        pairs[i][0] = vreinterpretq_s8_s32(vzip1q_s32(a, b));
        pairs[i][1] = vreinterpretq_s8_s32(vzip2q_s32(a, b));
      }
    }
  }
};

// dots[i] += the products of a half of tile i (panel_rows_neon_inl.h).
template <int kRows>
inline void add_dots(const OutputCodes<kRows>& outputs, const RowCodes<kRows>& rows, int half,
                     int32x4_t* dots) {
#pragma GCC unroll 2
  for (int k = 0; k < 2; ++k) {
#pragma GCC unroll 8
    for (int i = 0; i < kRows / 2 * 2; ++i) {
      dots[i] = vmmlaq_s32(dots[i], rows.pairs[half][i / 2][k], outputs.pairs[k][i % 2]);
    }
  }
  if constexpr (kRows % 2 == 1) {
    int32x4_t& sum = dots[kRows - 1];
    sum = vdotq_laneq_s32(sum, outputs.quads[0], rows.last[half], 0);
    sum = vdotq_laneq_s32(sum, outputs.quads[1], rows.last[half], 1);
    sum = vdotq_laneq_s32(sum, outputs.quads[2], rows.last[half], 2);
    sum = vdotq_laneq_s32(sum, outputs.quads[3], rows.last[half], 3);
  }
}

inline int64_t peak_dots(int64_t rounds, int32_t* sink) {
  constexpr int kChains = 16;
  const int8x16_t x = vdupq_n_s8(static_cast<int8_t>(rounds));
  int32x4_t sums[kChains];
  for (int32x4_t& sum : sums) sum = vdupq_n_s32(0);
  for (int64_t round = 0; round < rounds; ++round) {
#pragma GCC unroll 16
    for (int i = 0; i < kChains; ++i) sums[i] = vmmlaq_s32(sums[i], x, x);
  }
  for (const int32x4_t& sum : sums) *sink += vaddvq_s32(sum);
  return rounds * kChains * 32;
}

inline int32x4_t dot_four(int32x4_t sum, int8x16_t w, int8x16_t x) { return vdotq_s32(sum, w, x); }

}  // namespace sapwood::SAPWOOD_ISA

#include "kernels/isa/lanes_neon_quads.h"
