// Norm, quantisation, activation and log-softmax over Lanes. Included once per instruction set.
//
// Sums run over sixteen lanes and fold in a fixed order, so a row's bits depend on its own numbers
// and its length alone.
#pragma once

#include <algorithm>
#include <cmath>

#include "kernels/linear.h"

namespace sapwood::SAPWOOD_ISA {

// e^x, relative error below 2e-7: Cody-Waite reduction by ln 2 and a degree-6 Taylor polynomial on
// |r| <= ln(2)/2. Inputs are clamped to where the result is a normal float.
inline Lanes exponential(Lanes x) {
  x = min(max(x, set1(-87.0f)), set1(88.0f));
  const IntLanes n = to_int(mul(x, set1(1.44269504f)));
  const Lanes whole = to_float(n);
  Lanes r = fma(whole, set1(-0.693359375f), x);
  r = fma(whole, set1(2.12194440e-4f), r);
  Lanes p = set1(1.0f / 720.0f);
  p = fma(p, r, set1(1.0f / 120.0f));
  p = fma(p, r, set1(1.0f / 24.0f));
  p = fma(p, r, set1(1.0f / 6.0f));
  p = fma(p, r, set1(0.5f));
  p = fma(p, r, set1(1.0f));
  p = fma(p, r, set1(1.0f));
  return mul(p, power_of_two(n));
}

// x * sigmoid(x).
inline Lanes silu(Lanes x) { return div(x, add(set1(1.0f), exponential(sub(set1(0.0f), x)))); }

// The tanh form of GELU (Hendrycks and Gimpel 2016, eq. 2): with u = sqrt(2/pi)(x + 0.044715 x^3),
// x/2 (1 + tanh u) = x sigmoid(2u).
inline Lanes gelu_tanh(Lanes x) {
  const Lanes cube = mul(mul(x, x), x);
  const Lanes u = mul(set1(0.7978845608f), fma(set1(0.044715f), cube, x));
  return div(x, add(set1(1.0f), exponential(mul(set1(-2.0f), u))));
}

inline void rms_norm(const float* x, int stride, const float* weight, float epsilon, int rows,
                     int columns, float* out, int out_stride) {
  for (int row = 0; row < rows; ++row, x += stride, out += out_stride) {
    Lanes squares = set1(0.0f);
    for (int i = 0; i < columns; i += 16) {
      const Lanes v = load(x + i);
      squares = fma(v, v, squares);
    }
    const float mean = reduce_add(squares) / static_cast<float>(columns);
    const Lanes scale = set1(1.0f / std::sqrt(mean + epsilon));
    for (int i = 0; i < columns; i += 16) {
      store(out + i, mul(mul(load(x + i), scale), load(weight + i)));
    }
  }
}

// Of symmetric int8 codes, x * inverse rounded, that stand for code * scale. What is so small that
// the inverse would not be a number counts as zero.
struct SymmetricScale {
  float scale, inverse;
};
inline SymmetricScale symmetric_scale(float largest) {
  if (!(largest > 1e-30f)) return {0.0f, 0.0f};
  return {largest / 127.0f, 127.0f / largest};
}

inline void quantize_rows(const float* x, int stride, int columns, int row_begin, int row_end,
                          const QuantizedRows& out) {
  const int groups = columns / kActivationGroup;
  const int group_stride = out.inputs / kActivationGroup;
  for (int row = row_begin; row < row_end; ++row) {
    const float* source = x + static_cast<size_t>(row) * stride;
    int8_t* codes = out.codes + static_cast<size_t>(row) * out.inputs;
    for (int group = 0; group < groups; ++group, source += 32, codes += 32) {
      const Lanes a = load(source);
      const Lanes b = load(source + 16);
      const auto [scale, inverse_scale] = symmetric_scale(reduce_max(max(abs(a), abs(b))));
      const Lanes inverse = set1(inverse_scale);
      const int32_t sum = store_bytes(codes, to_int(mul(a, inverse))) +
                          store_bytes(codes + 16, to_int(mul(b, inverse)));
      const size_t index = static_cast<size_t>(row) * group_stride + group;
      out.scales[index] = scale;
      out.sums[index] = sum;
      out.scaled_sums[index] = scale * static_cast<float>(sum);
    }
  }
}

inline void rotate(float* x, const float* rotary, int head_dim) {
  const int half = head_dim / 2;
  for (int i = 0; i < half; ++i) {
    const float a = x[i];
    const float b = x[i + half];
    x[i] = a * rotary[i] - b * rotary[half + i];
    x[i + half] = b * rotary[i] + a * rotary[half + i];
  }
}

inline float log_softmax(const float* logits, int n, float* out) {
  const int whole = n / 16 * 16;
  Lanes largest_lanes = set1(logits[0]);
  for (int i = 0; i < whole; i += 16) largest_lanes = max(largest_lanes, load(logits + i));
  float largest = reduce_max(largest_lanes);
  for (int i = whole; i < n; ++i) largest = std::max(largest, logits[i]);

  Lanes sums = set1(0.0f);
  for (int i = 0; i < whole; i += 16) {
    sums = add(sums, exponential(sub(load(logits + i), set1(largest))));
  }
  float sum = reduce_add(sums);
  if (whole < n) {
    float tail[16], exponentials[16];
    for (int i = 0; i < 16; ++i) tail[i] = whole + i < n ? logits[whole + i] - largest : 0.0f;
    store(exponentials, exponential(load(tail)));
    for (int i = whole; i < n; ++i) sum = sum + exponentials[i - whole];
  }
  const float normaliser = largest + static_cast<float>(std::log(static_cast<double>(sum)));
  for (int i = 0; i < n; ++i) out[i] = logits[i] - normaliser;
  return normaliser;
}

// Reads `bytes` of memory, a multiple of 64, once; returns something that depends on all of it.
inline float read_memory(const uint8_t* data, size_t bytes) {
  Lanes sums[4] = {set1(0.0f), set1(0.0f), set1(0.0f), set1(0.0f)};
  const float* values = reinterpret_cast<const float*>(data);
  constexpr size_t kAhead = 8192;  // bytes: without asking, some machines read a third slower
  const size_t whole = bytes / 256 * 64;
  for (size_t i = 0; i < whole; i += 64) {
#pragma GCC unroll 4
    for (size_t line = 0; line < 256; line += 64)
      prefetch(data + i * sizeof(float) + kAhead + line);
#pragma GCC unroll 4
    for (int k = 0; k < 4; ++k) sums[k] = max(sums[k], load(values + i + k * 16));
  }
  return reduce_add(add(add(sums[0], sums[1]), add(sums[2], sums[3])));
}

}  // namespace sapwood::SAPWOOD_ISA
