// NEON with SDOT: four dot products of four bytes an instruction.
#pragma once

#include "kernels/isa/lanes_neon.h"

namespace sapwood::SAPWOOD_ISA {

inline constexpr bool kMatrixProducts = false;

// 32 inputs of each row, in halves of 16.
template <int kRows>
struct RowCodes {
  int8x16_t halves[2][kRows];

  void load(const int8_t* codes, size_t stride) {
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      halves[0][r] = vld1q_s8(codes + r * stride);
      halves[1][r] = vld1q_s8(codes + r * stride + 16);
    }
  }
};

// Four quads of inputs of four outputs, as they come.
template <int kRows>
struct OutputCodes {
  const int8x16_t* quads;

  explicit OutputCodes(const int8x16_t* quads) : quads(quads) {}
};

// dots[i] += the 16 products of a half of tile i (panel_rows_neon_inl.h).
template <int kRows>
inline void add_dots(const OutputCodes<kRows>& outputs, const RowCodes<kRows>& rows, int half,
                     int32x4_t* dots) {
  const auto step = [&]<int kQuad>() {
#pragma GCC unroll 8
    for (int i = 0; i < kRows; ++i) {
      dots[i] = vdotq_laneq_s32(dots[i], outputs.quads[kQuad], rows.halves[half][i], kQuad);
    }
  };
  step.template operator()<0>();
  step.template operator()<1>();
  step.template operator()<2>();
  step.template operator()<3>();
}

inline int64_t peak_dots(int64_t rounds, int32_t* sink) {
  constexpr int kChains = 16;
  const int8x16_t x = vdupq_n_s8(static_cast<int8_t>(rounds));
  int32x4_t sums[kChains];
  for (int32x4_t& sum : sums) sum = vdupq_n_s32(0);
  for (int64_t round = 0; round < rounds; ++round) {
#pragma GCC unroll 16
    for (int i = 0; i < kChains; ++i) sums[i] = vdotq_s32(sums[i], x, x);
  }
  for (const int32x4_t& sum : sums) *sink += vaddvq_s32(sum);
  return rounds * kChains * 16;
}

inline int32x4_t dot_four(int32x4_t sum, int8x16_t w, int8x16_t x) { return vdotq_s32(sum, w, x); }

}  // namespace sapwood::SAPWOOD_ISA

#include "kernels/isa/lanes_neon_quads.h"
