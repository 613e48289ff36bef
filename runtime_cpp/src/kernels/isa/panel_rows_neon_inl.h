// The inner loop of the linear layers on NEON (linear_inl.h). Included once per instruction set.
//
// A register holds four outputs, so the unit is a quarter of a panel: its codes of a group are
// unpacked once, in eight registers a part, and meet a block of rows held in L1. Sums of a quarter
// are `tiles`, as many registers as rows. A tile is four outputs of one row or, where the machine
// multiplies 2 x 8 by 8 x 2 matrices (kMatrixProducts), two outputs of two rows, [row][output]:
// tiles 2i and 2i + 1 are outputs 0, 1 and 2, 3 of rows 2i and 2i + 1. Everything but the dot
// products works on lanes alone and so does not care; rows are put in order once, at the end.
#pragma once

#include "kernels/isa/weights_ahead_inl.h"
#include "kernels/linear.h"

namespace sapwood::SAPWOOD_ISA {

// Tiles of two rows; the others, at most one where there are matrix products, have one.
template <int kRows>
inline constexpr int kPairTiles = kMatrixProducts ? kRows / 2 * 2 : 0;

// One number of each row, as the tiles need it.
template <int kRows>
struct PerRow {
  float32x4_t pair[kRows / 2 + 1];
  float single[kRows];

  void load(const float* p, size_t stride) {
#pragma GCC unroll 8
    for (int row = 0; row < kRows; ++row) {
      if (row >= kPairTiles<kRows>) {
        single[row] = p[row * stride];
      } else if (row % 2 == 1) {
        pair[row / 2] =
            vcombine_f32(vld1_dup_f32(p + (row - 1) * stride), vld1_dup_f32(p + row * stride));
      }
    }
  }
  float32x4_t times(float32x4_t x, int tile) const {
    if (tile < kPairTiles<kRows>) return vmulq_f32(x, pair[tile / 2]);
    return vmulq_n_f32(x, single[tile]);
  }
  float32x4_t times_plus(float32x4_t x, int tile, float32x4_t sum) const {
    if (tile < kPairTiles<kRows>) return vfmaq_f32(sum, x, pair[tile / 2]);
    return vfmaq_n_f32(sum, x, single[tile]);
  }
};

// Four outputs' scales or minima, as the tiles need them.
template <int kRows>
struct PerOutput {
  float32x4_t all, low, high;

  explicit PerOutput(const uint16_t* halves)
      : all(vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(halves)))) {
    if constexpr (kPairTiles<kRows> != 0) {
      const float64x2_t halves_of_four = vreinterpretq_f64_f32(all);
      low = vreinterpretq_f32_f64(vdupq_laneq_f64(halves_of_four, 0));
      high = vreinterpretq_f32_f64(vdupq_laneq_f64(halves_of_four, 1));
    }
  }
  float32x4_t of(int tile) const {
    if (tile >= kPairTiles<kRows>) return all;
    return tile % 2 == 0 ? low : high;
  }
};

// Four quads of inputs of four outputs, [output of 4][input of 4], as signed bytes: int8 codes lose
// their bias, int4 codes keep theirs.
template <bool kInt8>
inline void unpack_quads(const uint8_t* codes, int8x16_t quads[4]) {
#pragma GCC unroll 4
  for (int i = 0; i < 4; ++i) {
    if constexpr (kInt8) {
      quads[i] = vreinterpretq_s8_u8(veorq_u8(vld1q_u8(codes + i * 64), vdupq_n_u8(0x80)));
    } else if (i % 2 == 0) {
      const uint8x16_t pair = vld1q_u8(codes + i / 2 * 64);
      quads[i] = vreinterpretq_s8_u8(vandq_u8(pair, vdupq_n_u8(15)));
      quads[i + 1] = vreinterpretq_s8_u8(vshrq_n_u8(pair, 4));
    }
  }
}

// Makes the compiler load from `memory` here, and not far ahead into registers it has not got. A
// constant loaded is better than a register copied, too: that would take one of the vector units.
template <typename Memory>
[[gnu::always_inline]] inline void load_here(Memory& memory) {
  asm volatile("" : "+m"(memory));
}

// What a quarter needs of the rows for one part of 32 inputs.
template <int kRows>
struct PartOfRows {
  RowCodes<kRows> codes;
  PerRow<kRows> scale;
  PerRow<kRows> scaled_sum;
  int32_t start[kRows][4];  // minus the zero point's share of the dot products
};

// sums[2 r + p] = 16 outputs of panel p of kPanels neighbours, 1 or 2, for rows row .. row + kRows.
// A group is kParts parts of 32 inputs.
template <int kRows, int kPanels, int kBits, bool kMin, int kParts>
[[gnu::noinline]] void panel_rows(const LinearWeights& weights, const uint8_t* first_panel,
                                  const QuantizedRows& x, int row, Ahead& ahead, Lanes* sums) {
  constexpr bool kInt8 = kBits == 8;
  constexpr int kZeroPoint = kInt8 || kMin ? 0 : 8;
  constexpr size_t kCodeBytes = size_t{32} * kPanel * kBits / 8;
  constexpr size_t kGroupBytes = kCodeBytes * kParts + kPanel * 2 * (kMin ? 2 : 1);
  const size_t inputs = static_cast<size_t>(weights.inputs);
  const size_t parts = inputs / kActivationGroup;
  const size_t panel_bytes = parts / kParts * kGroupBytes;
  const uint8_t* group = first_panel;
  const QuantizedRows rows{x.codes + row * inputs, x.scales + row * parts, x.sums + row * parts,
                           x.scaled_sums + row * parts, x.inputs};

  float32x4_t tiles[kPanels][4][kRows];
  for (auto& panel : tiles) {
    for (auto& quarter : panel) {
      for (float32x4_t& tile : quarter) tile = vdupq_n_f32(0.0f);
    }
  }
  for (size_t index = 0; index < parts; index += kParts, group += kGroupBytes) {
    PartOfRows<kRows> all[kParts];
    for (int i = 0; i < kParts; ++i) {
      ahead.step();
      all[i].codes.load(rows.codes + (index + i) * kActivationGroup, inputs);
      all[i].scale.load(rows.scales + index + i, parts);
      if constexpr (kMin) all[i].scaled_sum.load(rows.scaled_sums + index + i, parts);
#pragma GCC unroll 8
      for (int r = 0; r < kRows; ++r) {
        const auto bias = [&](int of) {
          return kZeroPoint == 0 ? 0 : -kZeroPoint * rows.sums[of * parts + index + i];
        };
        int32_t* start = all[i].start[r];
        const bool pair = r < kPairTiles<kRows>;
        vst1_s32(start, vdup_n_s32(bias(pair ? r / 2 * 2 : r)));
        vst1_s32(start + 2, vdup_n_s32(bias(pair ? r / 2 * 2 + 1 : r)));
      }
    }
    for (int p = 0; p < kPanels; ++p) {
      const uint8_t* codes = group + p * panel_bytes;
      const uint16_t* tail = reinterpret_cast<const uint16_t*>(codes + kCodeBytes * kParts);
#pragma GCC unroll 1
      for (int quarter = 0; quarter < 4; ++quarter, codes += 16, tail += 4) {
        const PerOutput<kRows> scale(tail);
        const PerOutput<kRows> minimum(kMin ? tail + kPanel : tail);
        float32x4_t* sum = tiles[p][quarter];
        float32x4_t partial[kRows];
#pragma GCC unroll 1
        for (int part = 0; part < kParts; ++part) {
          PartOfRows<kRows>& now = all[part];
          int32x4_t dots[kRows];
          load_here(now.start);
#pragma GCC unroll 8
          for (int i = 0; i < kRows; ++i) dots[i] = vld1q_s32(now.start[i]);
#pragma GCC unroll 2
          for (int half = 0; half < 2; ++half) {
            int8x16_t quads[4];
            unpack_quads<kInt8>(codes + part * kCodeBytes + half * kCodeBytes / 2, quads);
            load_here(now.codes);
            add_dots<kRows>(OutputCodes<kRows>(quads), now.codes, half, dots);
          }
#pragma GCC unroll 8
          for (int i = 0; i < kRows; ++i) {
            const float32x4_t scaled = now.scale.times(vcvtq_f32_s32(dots[i]), i);
            if constexpr (kParts == 1) {
              sum[i] = vfmaq_f32(sum[i], scaled, scale.of(i));
            } else {
              partial[i] = vaddq_f32(part == 0 ? vdupq_n_f32(0.0f) : partial[i], scaled);
              if (part == kParts - 1) sum[i] = vfmaq_f32(sum[i], partial[i], scale.of(i));
            }
            if constexpr (kMin) {
              sum[i] = now.scaled_sum.times_plus(minimum.of(i), i, sum[i]);
            }
          }
        }
      }
    }
  }
  for (int p = 0; p < kPanels; ++p) {
    for (int quarter = 0; quarter < 4; ++quarter) {
      const float32x4_t* tile = tiles[p][quarter];
      for (int r = 0; r < kRows; ++r) {
        if (r >= kPairTiles<kRows>) {
          sums[2 * r + p].v[quarter] = tile[r];
        } else if (r % 2 == 0) {
          sums[2 * r + p].v[quarter] =
              vcombine_f32(vget_low_f32(tile[r]), vget_low_f32(tile[r + 1]));
          sums[2 * (r + 1) + p].v[quarter] =
              vcombine_f32(vget_high_f32(tile[r]), vget_high_f32(tile[r + 1]));
        }
      }
    }
  }
}

}  // namespace sapwood::SAPWOOD_ISA
