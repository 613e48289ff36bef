// exp() for non-positive floats, as a loop body that compilers vectorise.
//
// The same operations in the same order on every machine, so a sampled token does not depend on the
// instruction set or the C library. Relative error below 2e-7; below -87 the result is exactly 0,
// and so is that of -infinity. Internal linkage: files compiled for one instruction set include it
// too, and the linker must not give their copy to the others.
#pragma once

#include <cstdint>

namespace sapwood {

static inline float exp_nonpositive(float x) {
  const float bounded = x < -87.f ? -87.f : x;
  // exp(x) = 2^n * exp(r), n the nearest integer to x / ln 2, |r| <= ln 2 / 2.
  const int32_t n = static_cast<int32_t>(bounded * 1.44269504f - 0.5f);
  const float whole = static_cast<float>(n);
  // ln 2 in two parts, the first with trailing zeros so that whole * part is exact.
  const float r = (bounded - whole * 0.693359375f) - whole * -2.12194440e-4f;
  // Taylor series to r^7 / 7!, whose remainder is below 6e-9 here.
  float sum = 1.f / 5040.f;
  sum = sum * r + 1.f / 720.f;
  sum = sum * r + 1.f / 120.f;
  sum = sum * r + 1.f / 24.f;
  sum = sum * r + 1.f / 6.f;
  sum = sum * r + 0.5f;
  sum = sum * r + 1.f;
  sum = sum * r + 1.f;
  const float power = __builtin_bit_cast(float, (n + 127) << 23);
  return x < -87.f ? 0.f : sum * power;
}

}  // namespace sapwood
