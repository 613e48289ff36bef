// Included once by each vector_loops_<instruction set>.cc. Sixteen lanes whatever the machine's
// vectors are: that fixes the order of every sum, and the compiler cuts the lanes to the registers
// it has. No library function is called: see cmake/SapwoodCompiler.cmake.
#include <cstdint>

#include "verify/exponential.h"
#include "verify/isa/vector_loops.h"

namespace sapwood {
namespace {

constexpr int kLanes = 16;
constexpr int kWidth = SAPWOOD_VECTOR_FLOATS;
constexpr int kParts = kLanes / kWidth;
constexpr float kInfinity = __builtin_inff();
constexpr float kLargestFloat = 3.402823466e+38f;

using Floats = float __attribute__((vector_size(kWidth * 4)));
using Ints = int32_t __attribute__((vector_size(kWidth * 4)));
using Doubles = double __attribute__((vector_size(kWidth * 8)));
// The same at any address.
using UnalignedFloats = float __attribute__((vector_size(kWidth * 4), aligned(4), may_alias));

__attribute__((always_inline)) inline void load(const float* from, Floats& to) {
  to = *reinterpret_cast<const UnalignedFloats*>(from);
}

// exp_nonpositive, lane by lane the same operations.
__attribute__((always_inline)) inline void exponential(const Floats& x, Floats& out) {
  const Floats bounded = x < -87.f ? Floats{} - 87.f : x;
  const Ints n = __builtin_convertvector(bounded * 1.44269504f - 0.5f, Ints);
  const Floats whole = __builtin_convertvector(n, Floats);
  const Floats r = (bounded - whole * 0.693359375f) - whole * -2.12194440e-4f;
  Floats sum = r * (1.f / 5040.f) + 1.f / 720.f;
  sum = sum * r + 1.f / 120.f;
  sum = sum * r + 1.f / 24.f;
  sum = sum * r + 1.f / 6.f;
  sum = sum * r + 0.5f;
  sum = sum * r + 1.f;
  sum = sum * r + 1.f;
  const Floats power = reinterpret_cast<Floats>((n + 127) << 23);
  out = x < -87.f ? Floats{} : sum * power;
}

float largest(const float* values, int n, bool* bad) {
  Floats best[kParts];
  Ints wrong[kParts];
  for (int p = 0; p < kParts; ++p) {
    best[p] = Floats{} - kInfinity;
    wrong[p] = Ints{};
  }
  int i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    for (int p = 0; p < kParts; ++p) {
      Floats value;
      load(values + i + p * kWidth, value);
      best[p] = value > best[p] ? value : best[p];
      wrong[p] |= ~(value <= kLargestFloat);  // true for NaN as well
    }
  }
  float top = -kInfinity;
  for (int p = 0; p < kParts; ++p) {
    for (int j = 0; j < kWidth; ++j) {
      top = best[p][j] > top ? best[p][j] : top;
      *bad = *bad || wrong[p][j] != 0;
    }
  }
  for (; i < n; ++i) {
    top = values[i] > top ? values[i] : top;
    *bad = *bad || !(values[i] <= kLargestFloat);
  }
  return top;
}

double mass(const float* values, int n) {
  Doubles sums[kParts];
  for (int p = 0; p < kParts; ++p) sums[p] = Doubles{};
  int i = 0;
  for (; i + kLanes <= n; i += kLanes) {
    for (int p = 0; p < kParts; ++p) {
      Floats x;
      Floats weights;
      load(values + i + p * kWidth, x);
      exponential(x, weights);
      sums[p] += __builtin_convertvector(weights, Doubles);
    }
  }
  double total = 0;
  for (int p = 0; p < kParts; ++p) {
    for (int j = 0; j < kWidth; ++j) total += sums[p][j];
  }
  for (; i < n; ++i) total += static_cast<double>(exp_nonpositive(values[i]));
  return total;
}

void scale(const float* logits, int n, float largest_logit, float temperature, float* out) {
  for (int i = 0; i < n; ++i) out[i] = (logits[i] - largest_logit) / temperature;
}

constexpr VectorLoops kLoops = {largest, mass, scale};

}  // namespace
}  // namespace sapwood
