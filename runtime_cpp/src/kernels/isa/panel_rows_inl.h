// The inner loop of the linear layers where a vector register holds many outputs (linear_inl.h).
// Included once per instruction set.
//
// A part of 32 inputs of two panels is unpacked once and meets a block of rows; every row keeps its
// own sums, so rows never see each other.
#pragma once

#include "kernels/isa/weights_ahead_inl.h"
#include "kernels/linear.h"

namespace sapwood::SAPWOOD_ISA {

// out[2 r + p] = 16 outputs of panel p of kPanels neighbours, 1 or 2, for rows row .. row + kRows.
// A group is kParts parts of 32 inputs.
template <int kRows, int kPanels, int kBits, bool kMin, int kParts>
[[gnu::noinline]] void panel_rows(const LinearWeights& weights, const uint8_t* first_panel,
                                  const QuantizedRows& x, int row, Ahead& ahead, Lanes* out) {
  constexpr bool kInt8 = kBits == 8;
  constexpr size_t kCodeBytes = size_t{32} * kPanel * kBits / 8;
  constexpr size_t kTailBytes = kPanel * 2 * (kMin ? 2 : 1);
  const size_t inputs = static_cast<size_t>(weights.inputs);
  const size_t parts = inputs / kActivationGroup;
  const int8_t* codes = x.codes + row * inputs;
  const float* scales = x.scales + row * parts;
  const int32_t* code_sums = x.sums + row * parts;
  const float* scaled_sums = x.scaled_sums + row * parts;
  const size_t panel_bytes = parts / kParts * (kCodeBytes * kParts + kTailBytes);
  const uint8_t* panels[kPanels];
  for (int p = 0; p < kPanels; ++p) panels[p] = first_panel + p * panel_bytes;

  Lanes sums[kRows][kPanels];  // in registers; through `out` every update would be a store
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
    for (int p = 0; p < kPanels; ++p) sums[r][p] = set1(0.0f);
  }
  for (size_t index = 0; index < parts;) {
    Lanes partial[kParts == 1 ? 1 : kRows][kPanels];
    if constexpr (kParts != 1) {
      for (auto& lanes : partial) {
        for (Lanes& lane : lanes) lane = set1(0.0f);
      }
    }
    const uint8_t* tails[kPanels];
    for (int p = 0; p < kPanels; ++p) tails[p] = panels[p] + kCodeBytes * kParts;
#pragma GCC unroll 1
    for (int part = 0; part < kParts; ++part, ++index) {
      ahead.step();
      IntLanes dots[kRows][kPanels];
#pragma GCC unroll 16
      for (int r = 0; r < kRows; ++r) {
        const IntLanes start =
            set1_int(kMin ? 0 : -dot_bias<kInt8>() * code_sums[r * parts + index]);
#pragma GCC unroll 4
        for (int p = 0; p < kPanels; ++p) dots[r][p] = start;
      }
      dot_part<kRows, kPanels, kInt8>(panels, codes + index * kActivationGroup, inputs, dots);
#pragma GCC unroll 4
      for (int p = 0; p < kPanels; ++p) {
        const uint16_t* tail = reinterpret_cast<const uint16_t*>(tails[p]);
        const Lanes scale = load_half(tail);
        const Lanes minimum = load_half(kMin ? tail + kPanel : tail);
#pragma GCC unroll 16
        for (int r = 0; r < kRows; ++r) {
          const size_t at = r * parts + index;
          const Lanes scaled = mul(to_float(dots[r][p]), set1(scales[at]));
          if constexpr (kParts == 1) {
            sums[r][p] = fma(scaled, scale, sums[r][p]);
          } else {
            partial[r][p] = add(partial[r][p], scaled);
            if (part == kParts - 1) sums[r][p] = fma(partial[r][p], scale, sums[r][p]);
          }
          if constexpr (kMin) sums[r][p] = fma(minimum, set1(scaled_sums[at]), sums[r][p]);
        }
        panels[p] += kCodeBytes;
      }
    }
    for (int p = 0; p < kPanels; ++p) panels[p] += kTailBytes;
  }
#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
    for (int p = 0; p < kPanels; ++p) out[2 * r + p] = sums[r][p];
  }
}

}  // namespace sapwood::SAPWOOD_ISA
