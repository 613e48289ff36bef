// IEEE 754 half precision to and from single, in plain integer arithmetic.
//
// The same bits as the hardware's conversions (x86 F16C, Arm FCVT, default modes): to nearest, ties
// to even; overflow gives infinity; subnormals are kept; a NaN keeps its sign and upper payload and
// becomes quiet.
//
// The functions have internal linkage: files compiled for a newer instruction set include them too,
// and the linker must not hand their copy to everyone.
#pragma once

#include <cstdint>
#include <cstring>

namespace sapwood {

static inline float half_to_float(uint16_t half) {
  const uint32_t sign = static_cast<uint32_t>(half & 0x8000u) << 16;
  uint32_t exponent = (half >> 10) & 0x1fu;
  uint32_t mantissa = half & 0x3ffu;
  uint32_t bits = sign;
  if (exponent == 0x1fu) {
    bits |= 0x7f800000u | mantissa << 13;
    if (mantissa != 0) bits |= 0x00400000u;
  } else if (exponent != 0) {
    bits |= (exponent + 112u) << 23 | mantissa << 13;
  } else if (mantissa != 0) {
    // Subnormal: mantissa * 2^-24, a normal float.
    exponent = 113u;
    while ((mantissa & 0x400u) == 0) {
      mantissa <<= 1;
      --exponent;
    }
    bits |= exponent << 23 | (mantissa & 0x3ffu) << 13;
  }
  float value;
  std::memcpy(&value, &bits, sizeof value);
  return value;
}

static inline uint16_t float_to_half(float value) {
  uint32_t bits;
  std::memcpy(&bits, &value, sizeof bits);
  const uint32_t sign = bits >> 16 & 0x8000u;
  const uint32_t magnitude = bits & 0x7fffffffu;
  uint32_t half;
  if (magnitude > 0x7f800000u) {
    half = 0x7e00u | (magnitude >> 13 & 0x3ffu);
  } else if (magnitude >= 0x477ff000u) {  // 65520, half way to 2^16, and everything above
    half = 0x7c00u;
  } else if (magnitude >= 0x38800000u) {  // normal in half precision
    const uint32_t rebased = magnitude - (112u << 23);
    half = (rebased + 0xfffu + (rebased >> 13 & 1u)) >> 13;
  } else {
    // Subnormal or zero: significand * 2^(exponent - 126) units of 2^-24, rounded.
    const uint32_t shift = 126u - (magnitude >> 23);
    if (shift > 24u) {
      half = 0;
    } else {
      const uint32_t significand = (magnitude & 0x7fffffu) | 0x800000u;
      const uint32_t rest = significand & ((1u << shift) - 1u);
      const uint32_t middle = 1u << (shift - 1u);
      half = significand >> shift;
      if (rest > middle || (rest == middle && (half & 1u) != 0)) ++half;
    }
  }
  return static_cast<uint16_t>(sign | half);
}

}  // namespace sapwood
