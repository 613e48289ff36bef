// Sixteen lanes in four NEON registers; see lanes_scalar.h for what each function means.
// What every arm64 processor has; the dot products differ: lanes_neon_{plain,dotprod,i8mm}.h.
#pragma once

#include <arm_neon.h>

#include <cstdint>
#include <cstring>

#include "kernels/row_plan.h"

namespace sapwood::SAPWOOD_ISA {

struct Lanes {
  float32x4_t v[4];
};
struct IntLanes {
  int32x4_t v[4];
};

template <typename Function>
inline Lanes each(Function function) {
  return {{function(0), function(1), function(2), function(3)}};
}
inline Lanes set1(float x) {
  return each([&](int) { return vdupq_n_f32(x); });
}
inline Lanes load(const float* p) {
  return each([&](int i) { return vld1q_f32(p + 4 * i); });
}
inline void store(float* p, Lanes x) {
  for (int i = 0; i < 4; ++i) vst1q_f32(p + 4 * i, x.v[i]);
}
inline Lanes add(Lanes x, Lanes y) {
  return each([&](int i) { return vaddq_f32(x.v[i], y.v[i]); });
}
inline Lanes sub(Lanes x, Lanes y) {
  return each([&](int i) { return vsubq_f32(x.v[i], y.v[i]); });
}
inline Lanes mul(Lanes x, Lanes y) {
  return each([&](int i) { return vmulq_f32(x.v[i], y.v[i]); });
}
inline Lanes div(Lanes x, Lanes y) {
  return each([&](int i) { return vdivq_f32(x.v[i], y.v[i]); });
}
inline Lanes max(Lanes x, Lanes y) {
  return each([&](int i) { return vmaxq_f32(x.v[i], y.v[i]); });
}
inline Lanes min(Lanes x, Lanes y) {
  return each([&](int i) { return vminq_f32(x.v[i], y.v[i]); });
}
inline Lanes abs(Lanes x) {
  return each([&](int i) { return vabsq_f32(x.v[i]); });
}
inline Lanes fma(Lanes x, Lanes y, Lanes z) {
  return each([&](int i) { return vfmaq_f32(z.v[i], x.v[i], y.v[i]); });
}
inline Lanes load_half(const uint16_t* p) {
  return each([&](int i) { return vcvt_f32_f16(vreinterpret_f16_u16(vld1_u16(p + 4 * i))); });
}
inline void store_half(uint16_t* p, Lanes x) {
  for (int i = 0; i < 4; ++i) vst1_u16(p + 4 * i, vreinterpret_u16_f16(vcvt_f16_f32(x.v[i])));
}
inline IntLanes set1_int(int32_t x) {
  const int32x4_t four = vdupq_n_s32(x);
  return {{four, four, four, four}};
}
inline IntLanes load_int(const int32_t* p) {
  return {{vld1q_s32(p), vld1q_s32(p + 4), vld1q_s32(p + 8), vld1q_s32(p + 12)}};
}
inline void store_int(int32_t* p, IntLanes x) {
  for (int i = 0; i < 4; ++i) vst1q_s32(p + 4 * i, x.v[i]);
}
inline Lanes to_float(IntLanes x) {
  return each([&](int i) { return vcvtq_f32_s32(x.v[i]); });
}
inline IntLanes to_int(Lanes x) {
  return {{vcvtnq_s32_f32(x.v[0]), vcvtnq_s32_f32(x.v[1]), vcvtnq_s32_f32(x.v[2]),
           vcvtnq_s32_f32(x.v[3])}};
}
inline Lanes power_of_two(IntLanes n) {
  const int32x4_t bias = vdupq_n_s32(127);
  return each(
      [&](int i) { return vreinterpretq_f32_s32(vshlq_n_s32(vaddq_s32(n.v[i], bias), 23)); });
}
inline int32_t store_bytes(int8_t* p, IntLanes x) {
  const int16x8_t low = vcombine_s16(vmovn_s32(x.v[0]), vmovn_s32(x.v[1]));
  const int16x8_t high = vcombine_s16(vmovn_s32(x.v[2]), vmovn_s32(x.v[3]));
  vst1q_s8(p, vcombine_s8(vmovn_s16(low), vmovn_s16(high)));
  return vaddvq_s32(vaddq_s32(vaddq_s32(x.v[0], x.v[1]), vaddq_s32(x.v[2], x.v[3])));
}
inline float reduce_add(Lanes x) {
  const float32x4_t low = vaddq_f32(x.v[0], x.v[2]);
  const float32x4_t high = vaddq_f32(x.v[1], x.v[3]);
  const float32x4_t four = vaddq_f32(low, high);
  const float32x2_t two = vadd_f32(vget_low_f32(four), vget_high_f32(four));
  return vget_lane_f32(two, 0) + vget_lane_f32(two, 1);
}
inline float reduce_max(Lanes x) {
  return vmaxvq_f32(vmaxq_f32(vmaxq_f32(x.v[0], x.v[1]), vmaxq_f32(x.v[2], x.v[3])));
}

inline void prefetch(const void* p) { __builtin_prefetch(p); }

#define SAPWOOD_PANEL_ROWS "kernels/isa/panel_rows_neon_inl.h"
inline constexpr RowBlock kRowBlocks[] = {{1, 2}, {2, 2}, {3, 2}, {4, 2}, {6, 2}, {8, 2}};
inline constexpr int kScoreBlock = 4;
inline constexpr int kValueBlock = 1;
inline constexpr int kQuadRows = 6;
inline constexpr int kQuadSums = 6;

}  // namespace sapwood::SAPWOOD_ISA
