#include "base/half.h"

#include <gtest/gtest.h>

#include <bit>
#include <cmath>
#include <limits>
#include <random>

namespace sapwood {
namespace {

// The value of a finite half by the definition: (-1)^s * m * 2^e.
double value_of(uint16_t half) {
  const int exponent = half >> 10 & 31;
  const int mantissa = half & 1023;
  const double magnitude =
      exponent == 0 ? std::ldexp(mantissa, -24) : std::ldexp(1024 + mantissa, exponent - 25);
  return (half & 0x8000) != 0 ? -magnitude : magnitude;
}

// The nearest half to a finite value, found by search over all positive ones; ties to even codes.
uint16_t nearest_half(float value) {
  const double magnitude = std::fabs(static_cast<double>(value));
  int low = 0, high = 0x7c00;  // 0x7c00 stands for 2^16 here: where infinity begins
  while (high - low > 1) {
    const int middle = (low + high) / 2;
    (value_of(static_cast<uint16_t>(middle)) <= magnitude ? low : high) = middle;
  }
  const double below = magnitude - value_of(static_cast<uint16_t>(low));
  const double above = value_of(static_cast<uint16_t>(high)) - magnitude;
  const int code = below < above || (below == above && low % 2 == 0) ? low : high;
  return static_cast<uint16_t>(code | (std::signbit(value) ? 0x8000 : 0));
}

TEST(Half, EveryFiniteHalfBecomesItsExactFloatAndComesBack) {
  for (int code = 0; code < 0x10000; ++code) {
    const auto half = static_cast<uint16_t>(code);
    if ((half & 0x7c00) == 0x7c00) continue;
    ASSERT_EQ(static_cast<double>(half_to_float(half)), value_of(half)) << code;
    ASSERT_EQ(std::signbit(half_to_float(half)), (half & 0x8000) != 0) << code;
    ASSERT_EQ(float_to_half(half_to_float(half)), half) << code;
  }
}

TEST(Half, FloatsAtAndBesideEveryMidpointRoundToNearestEven) {
  for (int code = 0; code < 0x7c00; ++code) {
    const double here = value_of(static_cast<uint16_t>(code));
    const double next = value_of(static_cast<uint16_t>(code + 1));
    const auto middle = static_cast<float>((here + next) / 2);  // exact: one more bit
    const float infinity = std::numeric_limits<float>::infinity();
    for (const float value :
         {middle, std::nextafter(middle, 0.f), std::nextafter(middle, infinity)}) {
      ASSERT_EQ(float_to_half(value), nearest_half(value)) << value;
      ASSERT_EQ(float_to_half(-value), nearest_half(-value)) << value;
    }
  }
}

TEST(Half, RandomFloatsRoundToTheNearestHalf) {
  std::mt19937 random(1);
  int finite = 0;
  for (int i = 0; i < 200000; ++i) {
    // Exponents around the range of halves, where a decision is to be made.
    const auto exponent = static_cast<uint32_t>(100 + random() % 46);
    const auto rest = static_cast<uint32_t>(random()) & 0x807fffffu;
    const auto value = std::bit_cast<float>(exponent << 23 | rest);
    finite += std::fabs(value) < 65520.f;
    ASSERT_EQ(float_to_half(value), nearest_half(value)) << value;
  }
  EXPECT_GT(finite, 100000);
}

TEST(Half, OverflowAndInfinityBecomeInfinity) {
  EXPECT_EQ(float_to_half(65504.f), 0x7bff);
  EXPECT_EQ(float_to_half(std::nextafter(65520.f, 0.f)), 0x7bff);
  EXPECT_EQ(float_to_half(65520.f), 0x7c00);
  EXPECT_EQ(float_to_half(-1e30f), 0xfc00);
  EXPECT_EQ(float_to_half(std::numeric_limits<float>::infinity()), 0x7c00);
  EXPECT_EQ(half_to_float(0x7c00), std::numeric_limits<float>::infinity());
  EXPECT_EQ(half_to_float(0xfc00), -std::numeric_limits<float>::infinity());
}

TEST(Half, TinyFloatsBecomeSignedZero) {
  EXPECT_EQ(float_to_half(std::ldexp(1.f, -25)), 0);  // half of the smallest: a tie, to even
  EXPECT_EQ(float_to_half(std::nextafter(std::ldexp(1.f, -25), 1.f)), 1);
  EXPECT_EQ(float_to_half(-std::numeric_limits<float>::denorm_min()), 0x8000);
  EXPECT_EQ(float_to_half(0.f), 0);
  EXPECT_EQ(float_to_half(-0.f), 0x8000);
}

TEST(Half, NansStayNansBecomeQuietAndKeepSignAndPayload) {
  for (int payload = 1; payload < 1024; ++payload) {
    for (const int sign : {0, 0x8000}) {
      const auto half = static_cast<uint16_t>(sign | 0x7c00 | payload);
      const auto bits = std::bit_cast<uint32_t>(half_to_float(half));
      ASSERT_EQ(bits, static_cast<uint32_t>(sign) << 16 | 0x7fc00000u |
                          static_cast<uint32_t>(payload) << 13);
      ASSERT_EQ(float_to_half(half_to_float(half)), half | 0x200);
    }
  }
  // A payload in the low bits only must not turn into infinity.
  EXPECT_EQ(float_to_half(std::bit_cast<float>(0x7f800001u)), 0x7e00);
}

}  // namespace
}  // namespace sapwood
