// NEON as the first arm64 processors have it (Cortex-A53): bytes are multiplied into 16 bits.
#pragma once

#include "kernels/isa/lanes_neon.h"

namespace sapwood::SAPWOOD_ISA {

inline constexpr bool kMatrixProducts = false;

// 32 inputs of each row, read where they lie.
template <int kRows>
struct RowCodes {
  const int8_t* codes;
  size_t stride;

  void load(const int8_t* from, size_t distance) {
    codes = from;
    stride = distance;
  }
};

// Four bytes, twice.
inline int8x8_t quad(const int8_t* p) {
  int32_t four;
  std::memcpy(&four, p, sizeof four);
  return vreinterpret_s8_s32(vdup_n_s32(four));
}

// Four quads of inputs of four outputs, as they come.
template <int kRows>
struct OutputCodes {
  const int8x16_t* quads;

  explicit OutputCodes(const int8x16_t* quads) : quads(quads) {}
};

// dots[i] += the 16 products of a half of tile i (panel_rows_neon_inl.h). A lane of 16 bits holds
// two products, of -128 * 127 at most, before it must be widened.
template <int kRows>
inline void add_dots(const OutputCodes<kRows>& outputs, const RowCodes<kRows>& rows, int half,
                     int32x4_t* dots) {
#pragma GCC unroll 8
  for (int i = 0; i < kRows; ++i) {
    const int8_t* codes = rows.codes + i * rows.stride + 16 * half;
    int32x4_t low = vdupq_n_s32(0), high = low;  // [output of 2][pair of inputs of 2]
#pragma GCC unroll 2
    for (int k = 0; k < 4; k += 2) {
      const int8x16_t a = outputs.quads[k], b = outputs.quads[k + 1];
      const int8x8_t x = quad(codes + 4 * k), y = quad(codes + 4 * k + 4);
      low = vpadalq_s16(low, vmlal_s8(vmull_s8(vget_low_s8(a), x), vget_low_s8(b), y));
      high = vpadalq_s16(high, vmlal_s8(vmull_s8(vget_high_s8(a), x), vget_high_s8(b), y));
    }
    dots[i] = vaddq_s32(dots[i], vpaddq_s32(low, high));
  }
}

inline int64_t peak_dots(int64_t rounds, int32_t* sink) {
  constexpr int kChains = 16;
  const int8x8_t x = vdup_n_s8(static_cast<int8_t>(rounds));
  int16x8_t sums[kChains];
  for (int16x8_t& sum : sums) sum = vdupq_n_s16(0);
  for (int64_t round = 0; round < rounds; ++round) {
#pragma GCC unroll 16
    for (int i = 0; i < kChains; ++i) sums[i] = vmlal_s8(sums[i], x, x);
  }
  for (const int16x8_t& sum : sums) *sink += vaddvq_s16(sum);
  return rounds * kChains * 8;
}

// sum += four dot products of four signed bytes.
inline int32x4_t dot_four(int32x4_t sum, int8x16_t w, int8x16_t x) {
  const int32x4_t low = vpaddlq_s16(vmull_s8(vget_low_s8(w), vget_low_s8(x)));
  const int32x4_t high = vpaddlq_s16(vmull_s8(vget_high_s8(w), vget_high_s8(x)));
  return vaddq_s32(sum, vpaddq_s32(low, high));
}

}  // namespace sapwood::SAPWOOD_ISA

#include "kernels/isa/lanes_neon_quads.h"
