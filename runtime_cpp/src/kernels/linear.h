// Linear layers over packed int4 and int8 weights with int8 dynamic activations.
//
// y[row][output] = sum over groups of (int_sum * activation_scale) * scale + min * activation_sum,
// accumulated per output in group order with fused multiply-adds (a group of 128 first adds up the
// scaled sums of its four parts of 32). Integer sums are exact, and
// nothing is added across outputs or rows, so a row's bits depend on neither the number of rows nor
// the instruction set: every variant equals the scalar twin bit for bit.
//
// Packed layout. Outputs are cut into panels of 16, inputs into groups of 32 or 128. A panel is the
// sequence of its groups; a group is
//   int4: for every 32 inputs, 256 bytes: byte [pair q of 4][output of 16][input k of 4] holds
//   input
//         8q + k in its low and input 8q + 4 + k in its high nibble,
//   int8: for every 32 inputs, 512 bytes: byte [quad q of 8][output of 16][input k of 4] holds
//   input
//         4q + k, biased by 128 (an unsigned byte u stands for u - 128),
// followed by 16 fp16 scales and, if the format has minima, 16 fp16 minima:
//   w = scale * (code - zero_point) + min,   zero_point 8 for int4 without minima, 0 with, 128
//   int8.
// Panels beyond the last output are filled with zero scales. The array is 64-byte aligned.
#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string_view>

namespace sapwood {

inline constexpr int kPanel = 16;            // outputs a panel
inline constexpr int kActivationGroup = 32;  // inputs that share an activation scale

struct LinearFormat {
  int bits = 4;    // 4 or 8
  int group = 32;  // inputs that share a scale: 32 or 128
  bool has_min = false;

  int zero_point() const { return bits == 8 ? 128 : (has_min ? 0 : 8); }
  size_t group_bytes() const {
    return static_cast<size_t>(group) * kPanel * bits / 8 + kPanel * 2 * (has_min ? 2 : 1);
  }
  bool operator==(const LinearFormat&) const = default;
};

// "int4_g32", "int4_g32_min", "int4_g128", "int4_g128_min", "int8_g32"; empty for anything else.
std::optional<LinearFormat> parse_linear_format(std::string_view name);
std::string_view linear_format_name(const LinearFormat& format);

class RowPlan;  // row_plan.h

struct LinearWeights {
  const uint8_t* data = nullptr;
  int outputs = 0;
  int inputs = 0;  // a multiple of format.group
  LinearFormat format;
  const RowPlan* plan = nullptr;  // how rows are cut into blocks; null: the widest that fit

  int panels() const { return (outputs + kPanel - 1) / kPanel; }
  int groups() const { return inputs / format.group; }
  size_t panel_bytes() const { return groups() * format.group_bytes(); }
  size_t bytes() const { return panels() * panel_bytes(); }
};

// Activations of several rows, quantised to int8 in groups of 32. Sums serve zero points and
// minima.
struct QuantizedRows {
  int8_t* codes = nullptr;       // [rows][inputs]
  float* scales = nullptr;       // [rows][inputs / 32]
  int32_t* sums = nullptr;       // [rows][inputs / 32], sum of the group's codes
  float* scaled_sums = nullptr;  // [rows][inputs / 32], scale * sum
  int inputs = 0;                // a multiple of 32, and the distance between rows

  // The same rows from this input on, a multiple of 32: for work on a part of the columns.
  QuantizedRows from(int input) const {
    const int group = input / kActivationGroup;
    return {codes + input, scales + group, sums + group, scaled_sums + group, inputs};
  }
};

}  // namespace sapwood
