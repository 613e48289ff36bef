// Linear layers over packed weights (linear.h). Included once per instruction set.
//
// A panel's group is unpacked once and meets a block of rows; every row keeps its own sum, so rows
// never see each other. The block size is the number of sums that fit in registers.
#pragma once

#include <algorithm>
#include <cstring>

#include "kernels/isa/elementwise_inl.h"
#include "kernels/linear.h"

namespace sapwood::SAPWOOD_ISA {

// How far ahead of use weights are asked for. They stream once, in address order, panel after
// panel.
inline constexpr size_t kPrefetchBytes = 3072;

// sums[r] = the panel's 16 outputs for rows row .. row + kRows. A group is kParts parts of 32
// inputs.
template <int kRows, int kBits, bool kMin, int kParts>
inline void panel_rows(const LinearWeights& weights, const uint8_t* panel, const QuantizedRows& x,
                       int row, bool first, Lanes sums[kRows]) {
  constexpr bool kInt8 = kBits == 8;
  constexpr size_t kCodeBytes = size_t{32} * kPanel * kBits / 8;
  const int inputs = weights.inputs;
  const int parts = inputs / kActivationGroup;
  const int8_t* codes = x.codes + static_cast<size_t>(row) * inputs;
  const size_t base = static_cast<size_t>(row) * parts;
  const float* scales = x.scales + base;
  const int32_t* code_sums = x.sums + base;
  const float* scaled_sums = x.scaled_sums + base;

#pragma GCC unroll 16
  for (int r = 0; r < kRows; ++r) sums[r] = set1(0.0f);

  for (int index = 0; index < parts; index += kParts) {
    const uint16_t* tail = reinterpret_cast<const uint16_t*>(panel + kCodeBytes * kParts);
    const Lanes scale = load_half(tail);
    const Lanes minimum = load_half(kMin ? tail + kPanel : tail);
    Lanes partial[kParts == 1 ? 1 : kRows];
    for (Lanes& lanes : partial) lanes = set1(0.0f);
#pragma GCC unroll 1
    for (int part = 0; part < kParts; ++part) {
      if (first) {
#pragma GCC unroll 8
        for (size_t line = 0; line < kCodeBytes + 64; line += 64) {
          prefetch(panel + kPrefetchBytes + line);
        }
      }
      Codes w[8];
      if constexpr (kInt8) {
        unpack_int8(panel, w);
      } else {
        unpack_int4(panel, w);
      }
#pragma GCC unroll 16
      for (int r = 0; r < kRows; ++r) {
        const int at = r * parts + index + part;
        const int32_t init = kMin ? 0 : -(kInt8 ? 128 : 8) * code_sums[at];
        const IntLanes dots = dot_group<kInt8>(
            init, w, codes + static_cast<size_t>(r) * inputs + (index + part) * kActivationGroup);
        const Lanes scaled = mul(to_float(dots), set1(scales[at]));
        if constexpr (kParts == 1) {
          sums[r] = fma(scaled, scale, sums[r]);
        } else {
          partial[r] = add(partial[r], scaled);
        }
        if constexpr (kMin) sums[r] = fma(minimum, set1(scaled_sums[at]), sums[r]);
      }
      panel += kCodeBytes;
    }
    if constexpr (kParts != 1) {
#pragma GCC unroll 16
      for (int r = 0; r < kRows; ++r) sums[r] = fma(partial[r], scale, sums[r]);
    }
    panel += kPanel * 2 * (kMin ? 2 : 1);
  }
}

// Calls visit(row, panel index, sums) for every row and panel; a panel's rows come in blocks.
template <int kBits, bool kMin, int kParts, int kPanels, typename Visit>
inline void for_each_block(const LinearWeights& weights, const QuantizedRows& x, int rows,
                           int begin, int end, Visit visit) {
  const size_t panel_bytes = weights.panel_bytes();
  for (int item = begin; item < end; ++item) {
    const uint8_t* panel = weights.data + static_cast<size_t>(item) * kPanels * panel_bytes;
    const auto block = [&]<int kRows>(int row) {
      Lanes sums[kPanels][kRows];
#pragma GCC unroll 2
      for (int p = 0; p < kPanels; ++p) {
        panel_rows<kRows, kBits, kMin, kParts>(weights, panel + p * panel_bytes, x, row, row == 0,
                                               sums[p]);
      }
#pragma GCC unroll 16
      for (int r = 0; r < kRows; ++r) {
        if constexpr (kPanels == 1) {
          visit(row + r, item, sums[0][r], sums[0][r]);
        } else {
          visit(row + r, item, sums[0][r], sums[1][r]);
        }
      }
    };
    int row = 0;
    for (; rows - row >= kRowBlock; row += kRowBlock) block.template operator()<kRowBlock>(row);
    if constexpr (kRowBlock > 8) {
      if (rows - row >= 12) block.template operator()<12>(row), row += 12;
      if (rows - row >= 8) block.template operator()<8>(row), row += 8;
    }
    if constexpr (kRowBlock > 4) {
      if (rows - row >= 6) block.template operator()<6>(row), row += 6;
      if (rows - row >= 4) block.template operator()<4>(row), row += 4;
    }
    if (rows - row >= 3) block.template operator()<3>(row), row += 3;
    if (rows - row >= 2) block.template operator()<2>(row), row += 2;
    if (rows - row >= 1) block.template operator()<1>(row), row += 1;
  }
}

template <int kPanels, typename Visit>
inline void for_each_format(const LinearWeights& weights, const QuantizedRows& x, int rows,
                            int begin, int end, Visit visit) {
  const LinearFormat& format = weights.format;
  const auto run = [&]<int kBits, bool kMin, int kParts>() {
    for_each_block<kBits, kMin, kParts, kPanels>(weights, x, rows, begin, end, visit);
  };
  if (format.bits == 8) {
    run.template operator()<8, false, 1>();
  } else if (format.group == 32) {
    format.has_min ? run.template operator()<4, true, 1>() : run.template operator()<4, false, 1>();
  } else {
    format.has_min ? run.template operator()<4, true, 4>() : run.template operator()<4, false, 4>();
  }
}

inline void linear(const LinearWeights& weights, const QuantizedRows& x, int rows, int panel_begin,
                   int panel_end, bool accumulate, float* y, int stride) {
  for_each_format<1>(weights, x, rows, panel_begin, panel_end,
                     [&](int row, int panel, Lanes sums, Lanes) {
                       float* target = y + static_cast<size_t>(row) * stride + panel * kPanel;
                       const int count = std::min(kPanel, weights.outputs - panel * kPanel);
                       if (count == kPanel) {
                         store(target, accumulate ? add(load(target), sums) : sums);
                         return;
                       }
                       float last[kPanel];
                       store(last, sums);
                       for (int i = 0; i < count; ++i)
                         target[i] = accumulate ? target[i] + last[i] : last[i];
                     });
}

inline void gated_linear(const LinearWeights& weights, const QuantizedRows& x, int rows,
                         int pair_begin, int pair_end, Activation activation, float* y,
                         int stride) {
  const auto run = [&](auto function) {
    for_each_format<2>(
        weights, x, rows, pair_begin, pair_end, [&](int row, int pair, Lanes gate, Lanes up) {
          store(y + static_cast<size_t>(row) * stride + pair * kPanel, mul(function(gate), up));
        });
  };
  if (activation == Activation::kSilu) {
    run([](Lanes gate) { return silu(gate); });
  } else {
    run([](Lanes gate) { return gelu_tanh(gate); });
  }
}

}  // namespace sapwood::SAPWOOD_ISA
