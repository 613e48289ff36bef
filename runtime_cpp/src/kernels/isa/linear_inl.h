// Linear layers over packed weights (linear.h). Included once per instruction set.
//
// panel_rows(), the inner loop, is panel_rows_inl.h's unless the lanes bring one of their own.
#pragma once

#include <algorithm>
#include <cstring>
#include <iterator>
#include <utility>

#include "kernels/isa/elementwise_inl.h"
#include "kernels/linear.h"
#include "kernels/row_plan.h"

#ifndef SAPWOOD_PANEL_ROWS
#define SAPWOOD_PANEL_ROWS "kernels/isa/panel_rows_inl.h"
#endif
#include SAPWOOD_PANEL_ROWS

namespace sapwood::SAPWOOD_ISA {

inline constexpr int kBlockKinds = static_cast<int>(std::size(kRowBlocks));

// Which of kRowBlocks the next rows are taken in: what the plan says, unless it was made for
// another table; without one the widest.
inline int next_block(const RowPlan* plan, int rows_left) {
  if (plan != nullptr) {
    const int kind = plan->block(rows_left);
    if (kind < kBlockKinds && kRowBlocks[kind].rows <= rows_left) return kind;
  }
  int kind = kBlockKinds - 1;
  while (kRowBlocks[kind].rows > rows_left) --kind;
  return kind;
}

// Calls visit(row, panel, sums) for every row and panel, panels in blocks of kPanels: sums has
// kPanels entries. All rows meet a block of panels before the next is touched, and ask for the next
// one meanwhile, each its part: so weights come from memory once, and while others are in use.
template <int kPanels, int kBits, bool kMin, int kParts, typename Visit>
inline void for_each_block(const LinearWeights& weights, const QuantizedRows& x, int rows,
                           int begin, int end, Visit visit) {
  const size_t panel_bytes = weights.panel_bytes();
  const size_t parts = static_cast<size_t>(weights.inputs / kActivationGroup);
  size_t calls = 0;  // of panel_rows for each block of panels
  for (int row = 0; row < rows;) {
    const RowBlock block = kRowBlocks[next_block(weights.plan, rows - row)];
    calls += kPanels > block.panels ? 2 : 1;
    row += block.rows;
  }
  const size_t lines_per_part = (kPanels * panel_bytes / 64 + parts * calls - 1) / (parts * calls);
  for (int panel = begin; panel < end; panel += kPanels) {
    const uint8_t* data = weights.data + panel * panel_bytes;
    Ahead ahead{data + kPanels * panel_bytes, lines_per_part};
    int row = 0;
    const auto take = [&]<int kRows, int kTogether>() {
      Lanes sums[kRows][2];
      for (int p = 0; p < kPanels; p += kTogether) {
        panel_rows<kRows, kTogether, kBits, kMin, kParts>(weights, data + p * panel_bytes, x, row,
                                                          ahead, &sums[0][p]);
      }
      for (int r = 0; r < kRows; ++r) visit(row + r, panel, sums[r]);
      row += kRows;
    };
    while (row < rows) {
      if constexpr (kPanels == 1) {  // the last of an odd number: not worth more code
        take.template operator()<1, 1>();
      } else {
        const int kind = next_block(weights.plan, rows - row);
        [&]<int... kKinds>(std::integer_sequence<int, kKinds...>) {
          (void)((kind == kKinds &&
                  (take.template operator()<kRowBlocks[kKinds].rows, kRowBlocks[kKinds].panels>(),
                   true)) ||
                 ...);
        }
        (std::make_integer_sequence<int, kBlockKinds>());
      }
    }
  }
}

template <int kPanels, typename Visit>
inline void for_each_format(const LinearWeights& weights, const QuantizedRows& x, int rows,
                            int begin, int end, Visit visit) {
  const LinearFormat& format = weights.format;
  const auto run = [&]<int kBits, bool kMin, int kParts>() {
    for_each_block<kPanels, kBits, kMin, kParts>(weights, x, rows, begin, end, visit);
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
  const auto write = [&](int row, int panel, Lanes sums) {
    float* target = y + static_cast<size_t>(row) * stride + panel * kPanel;
    const int count = weights.outputs - panel * kPanel;
    if (count >= kPanel) {
      store(target, accumulate ? add(load(target), sums) : sums);
      return;
    }
    float last[kPanel];
    store(last, sums);
    for (int i = 0; i < count; ++i) target[i] = accumulate ? target[i] + last[i] : last[i];
  };
  const int pairs_end = panel_begin + (panel_end - panel_begin) / 2 * 2;
  for_each_format<2>(weights, x, rows, panel_begin, pairs_end,
                     [&](int row, int panel, const Lanes* sums) {
                       write(row, panel, sums[0]);
                       write(row, panel + 1, sums[1]);
                     });
  for_each_format<1>(weights, x, rows, pairs_end, panel_end,
                     [&](int row, int panel, const Lanes* sums) { write(row, panel, sums[0]); });
}

inline void gated_linear(const LinearWeights& weights, const QuantizedRows& x, int rows,
                         int pair_begin, int pair_end, Activation activation, float* y,
                         int stride) {
  const auto run = [&](auto function) {
    for_each_format<2>(weights, x, rows, 2 * pair_begin, 2 * pair_end,
                       [&](int row, int panel, const Lanes* sums) {
                         store(y + static_cast<size_t>(row) * stride + panel / 2 * kPanel,
                               mul(function(sums[0]), sums[1]));
                       });
  };
  if (activation == Activation::kSilu) {
    run([](Lanes gate) { return silu(gate); });
  } else {
    run([](Lanes gate) { return gelu_tanh(gate); });
  }
}

}  // namespace sapwood::SAPWOOD_ISA
