// Sixteen floats or integers at a time, in plain C++: the readable twin of the other lanes_*.h.
//
// Each lanes_*.h defines the same types and functions in a namespace of its own, named by the macro
// SAPWOOD_ISA, with the same rounding in every lane, so that kernels_inl.h has the same bits on
// all.
#pragma once

#include <cmath>
#include <cstdint>
#include <cstring>

#include "base/half.h"
#include "kernels/row_plan.h"

namespace sapwood::SAPWOOD_ISA {

struct Lanes {
  float v[16];
};
struct IntLanes {
  int32_t v[16];
};

inline Lanes set1(float x) {
  Lanes r;
  for (float& lane : r.v) lane = x;
  return r;
}
inline Lanes load(const float* p) {
  Lanes r;
  std::memcpy(r.v, p, sizeof r.v);
  return r;
}
inline void store(float* p, const Lanes& a) { std::memcpy(p, a.v, sizeof a.v); }

template <typename Function>
inline Lanes map(const Lanes& a, const Lanes& b, Function function) {
  Lanes r;
  for (int i = 0; i < 16; ++i) r.v[i] = function(a.v[i], b.v[i]);
  return r;
}
inline Lanes add(const Lanes& a, const Lanes& b) {
  return map(a, b, [](float x, float y) { return x + y; });
}
inline Lanes sub(const Lanes& a, const Lanes& b) {
  return map(a, b, [](float x, float y) { return x - y; });
}
inline Lanes mul(const Lanes& a, const Lanes& b) {
  return map(a, b, [](float x, float y) { return x * y; });
}
inline Lanes div(const Lanes& a, const Lanes& b) {
  return map(a, b, [](float x, float y) { return x / y; });
}
inline Lanes max(const Lanes& a, const Lanes& b) {
  return map(a, b, [](float x, float y) { return x > y ? x : y; });
}
inline Lanes min(const Lanes& a, const Lanes& b) {
  return map(a, b, [](float x, float y) { return x < y ? x : y; });
}
inline Lanes abs(const Lanes& a) {
  return map(a, a, [](float x, float) { return std::fabs(x); });
}
// a * b + c, rounded once.
inline Lanes fma(const Lanes& a, const Lanes& b, const Lanes& c) {
  Lanes r;
  for (int i = 0; i < 16; ++i) r.v[i] = std::fma(a.v[i], b.v[i], c.v[i]);
  return r;
}
inline Lanes load_half(const uint16_t* p) {
  Lanes r;
  for (int i = 0; i < 16; ++i) r.v[i] = half_to_float(p[i]);
  return r;
}
inline void store_half(uint16_t* p, const Lanes& a) {
  for (int i = 0; i < 16; ++i) p[i] = float_to_half(a.v[i]);
}
inline IntLanes set1_int(int32_t x) {
  IntLanes r;
  for (int32_t& lane : r.v) lane = x;
  return r;
}
inline IntLanes load_int(const int32_t* p) {
  IntLanes r;
  std::memcpy(r.v, p, sizeof r.v);
  return r;
}
inline void store_int(int32_t* p, const IntLanes& a) { std::memcpy(p, a.v, sizeof a.v); }
inline Lanes to_float(const IntLanes& a) {
  Lanes r;
  for (int i = 0; i < 16; ++i) r.v[i] = static_cast<float>(a.v[i]);
  return r;
}
// Rounds to the nearest integer, halves to even.
inline IntLanes to_int(const Lanes& a) {
  IntLanes r;
  for (int i = 0; i < 16; ++i) r.v[i] = static_cast<int32_t>(std::nearbyint(a.v[i]));
  return r;
}
// 2^n for n in [-126, 127].
inline Lanes power_of_two(const IntLanes& n) {
  Lanes r;
  for (int i = 0; i < 16; ++i) {
    const uint32_t bits = static_cast<uint32_t>(n.v[i] + 127) << 23;
    std::memcpy(&r.v[i], &bits, sizeof bits);
  }
  return r;
}
// Stores the lanes, which are within [-128, 127], as bytes, and returns their sum.
inline int32_t store_bytes(int8_t* p, const IntLanes& a) {
  int32_t sum = 0;
  for (int i = 0; i < 16; ++i) {
    p[i] = static_cast<int8_t>(a.v[i]);
    sum += a.v[i];
  }
  return sum;
}
// Folds halves onto each other: lanes 8 apart, then 4, 2, 1.
inline float reduce_add(const Lanes& a) {
  float v[16];
  std::memcpy(v, a.v, sizeof v);
  for (int width = 8; width > 0; width /= 2) {
    for (int i = 0; i < width; ++i) v[i] = v[i] + v[i + width];
  }
  return v[0];
}
inline float reduce_max(const Lanes& a) {
  float r = a.v[0];
  for (float lane : a.v) r = lane > r ? lane : r;
  return r;
}

// sums[r][p] += the dot products of 32 inputs: the codes of kPanels panels (linear.h) with rows of
// activations that are `stride` bytes apart. Where an instruction takes signed bytes, int8 codes
// lose their bias here and dot_bias() is zero; elsewhere the caller starts a sum at
// -dot_bias() * (sum of the activations).
template <int kRows, int kPanels, bool kInt8>
[[gnu::always_inline]] inline void dot_part(const uint8_t* const* panels, const int8_t* a,
                                            size_t stride, IntLanes (*sums)[kPanels]) {
  for (int r = 0; r < kRows; ++r) {
    for (int p = 0; p < kPanels; ++p) {
      for (int k = 0; k < 32; ++k) {
        const int quad = k / 4;
        for (int output = 0; output < 16; ++output) {
          const int lane = output * 4 + k % 4;
          const int code = kInt8           ? panels[p][quad * 64 + lane]
                           : quad % 2 == 0 ? panels[p][quad / 2 * 64 + lane] & 15
                                           : panels[p][quad / 2 * 64 + lane] >> 4;
          sums[r][p].v[output] += code * a[r * stride + k];
        }
      }
    }
  }
}
template <bool kInt8>
constexpr int dot_bias() {
  return kInt8 ? 128 : 8;
}
// What the bytes of dot_quads are. kBiased: codes biased by 128, times signed bytes. kSigned:
// signed bytes, times 0 .. 127.
enum class Quads { kBiased, kSigned };

// sums[r][p].v[lane] += dot products over quads of bytes: codes [quad][lane][4] of kPanels panels,
// panel_stride and quad_stride bytes apart, with four bytes a quad of rows x_stride apart. Biased
// codes keep kQuadBias of their bias, which the caller takes off. `quads` is a multiple of kStep.
template <int kRows, int kPanels, int kStep, Quads kQuads>
[[gnu::always_inline]] inline void dot_quads(const uint8_t* codes, size_t panel_stride,
                                             size_t quad_stride, const int8_t* x, size_t x_stride,
                                             int quads, IntLanes (*sums)[kPanels]) {
  for (int quad = 0; quad < quads; ++quad) {
    for (int r = 0; r < kRows; ++r) {
      for (int p = 0; p < kPanels; ++p) {
        const uint8_t* from = codes + p * panel_stride + quad * quad_stride;
        for (int i = 0; i < 64; ++i) {
          const int code = kQuads == Quads::kBiased ? from[i] : static_cast<int8_t>(from[i]);
          sums[r][p].v[i / 4] += code * x[r * x_stride + quad * 4 + i % 4];
        }
      }
    }
  }
}
inline constexpr int kQuadBias = 128;
// Multiply-accumulates of int8 a machine does when nothing else stands in the way: `rounds` rounds
// of dot products of registers. Returns their number; `sink` keeps the compiler from dropping them.
inline int64_t peak_dots(int64_t rounds, int32_t* sink) {
  int32_t sums[16] = {};
  for (int64_t round = 0; round < rounds; ++round) {
    for (int i = 0; i < 16; ++i) sums[i] += static_cast<int32_t>(round) * i;
  }
  for (const int32_t sum : sums) *sink += sum;
  return rounds * 16;
}
inline void prefetch(const void*) {}

inline constexpr RowBlock kRowBlocks[] = {{1, 2}};
inline constexpr int kScoreBlock = 4;  // query vectors a score tile serves at once
inline constexpr int kValueBlock = 2;  // query vectors a value row serves at once
inline constexpr int kQuadRows = 1;    // query vectors a quad of int8 codes serves at once
inline constexpr int kQuadSums = 1;    // sums of them that registers hold

}  // namespace sapwood::SAPWOOD_ISA
