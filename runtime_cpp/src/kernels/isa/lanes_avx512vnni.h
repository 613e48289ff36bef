// Sixteen lanes in one AVX-512 register; see lanes_scalar.h for what each function means.
#pragma once

// GCC 12 warns about its own _mm512_undefined (GCC bug 105593).
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wuninitialized"
#ifndef __clang__
#pragma GCC diagnostic ignored "-Wmaybe-uninitialized"
#endif
#include <immintrin.h>
#pragma GCC diagnostic pop

#include <cstdint>
#include <cstring>

#include "kernels/row_plan.h"

namespace sapwood::SAPWOOD_ISA {

using Lanes = __m512;
using IntLanes = __m512i;

inline Lanes set1(float x) { return _mm512_set1_ps(x); }
inline Lanes load(const float* p) { return _mm512_loadu_ps(p); }
inline void store(float* p, Lanes a) { _mm512_storeu_ps(p, a); }
inline Lanes add(Lanes a, Lanes b) { return _mm512_add_ps(a, b); }
inline Lanes sub(Lanes a, Lanes b) { return _mm512_sub_ps(a, b); }
inline Lanes mul(Lanes a, Lanes b) { return _mm512_mul_ps(a, b); }
inline Lanes div(Lanes a, Lanes b) { return _mm512_div_ps(a, b); }
inline Lanes max(Lanes a, Lanes b) { return _mm512_max_ps(a, b); }
inline Lanes min(Lanes a, Lanes b) { return _mm512_min_ps(a, b); }
inline Lanes abs(Lanes a) { return _mm512_abs_ps(a); }
inline Lanes fma(Lanes a, Lanes b, Lanes c) { return _mm512_fmadd_ps(a, b, c); }
inline Lanes load_half(const uint16_t* p) {
  return _mm512_cvtph_ps(_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)));
}
inline void store_half(uint16_t* p, Lanes a) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p),
                      _mm512_cvtps_ph(a, _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC));
}
inline IntLanes set1_int(int32_t x) { return _mm512_set1_epi32(x); }
inline IntLanes load_int(const int32_t* p) { return _mm512_loadu_si512(p); }
inline void store_int(int32_t* p, IntLanes a) { _mm512_storeu_si512(p, a); }
inline Lanes to_float(IntLanes a) { return _mm512_cvtepi32_ps(a); }
inline IntLanes to_int(Lanes a) { return _mm512_cvtps_epi32(a); }
inline Lanes power_of_two(IntLanes n) {
  return _mm512_castsi512_ps(_mm512_slli_epi32(_mm512_add_epi32(n, _mm512_set1_epi32(127)), 23));
}
inline int32_t store_bytes(int8_t* p, IntLanes a) {
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm512_cvtepi32_epi8(a));
  return _mm512_reduce_add_epi32(a);
}
inline float reduce_add(Lanes a) {
  const __m256 eight = _mm256_add_ps(_mm512_castps512_ps256(a), _mm512_extractf32x8_ps(a, 1));
  const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}
inline float reduce_max(Lanes a) { return _mm512_reduce_max_ps(a); }

inline __m512i broadcast_four(const int8_t* a) {
  int32_t four;
  std::memcpy(&four, a, sizeof four);
  return _mm512_set1_epi32(four);
}

// Quad by quad, so that consecutive VPDPBUSD belong to different sums: a sum's chain of eight would
// otherwise fill the scheduler while it waits for itself.
template <int kRows, int kPanels, bool kInt8>
[[gnu::always_inline]] inline void dot_part(const uint8_t* const* panels, const int8_t* a,
                                            size_t stride, IntLanes (*sums)[kPanels]) {
  const __m512i low = _mm512_set1_epi8(15);
#pragma GCC unroll 4
  for (int pair = 0; pair < 4; ++pair) {
    __m512i w0[kPanels], w1[kPanels];
#pragma GCC unroll 4
    for (int p = 0; p < kPanels; ++p) {
      if constexpr (kInt8) {
        w0[p] = _mm512_loadu_si512(panels[p] + pair * 128);
        w1[p] = _mm512_loadu_si512(panels[p] + pair * 128 + 64);
      } else {
        const __m512i packed = _mm512_loadu_si512(panels[p] + pair * 64);
        w0[p] = _mm512_and_si512(packed, low);
        w1[p] = _mm512_and_si512(_mm512_srli_epi16(packed, 4), low);
      }
    }
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) {
      const __m512i x = broadcast_four(a + r * stride + pair * 8);
#pragma GCC unroll 4
      for (int p = 0; p < kPanels; ++p) sums[r][p] = _mm512_dpbusd_epi32(sums[r][p], w0[p], x);
    }
#pragma GCC unroll 16
    for (int r = 0; r < kRows; ++r) {
      const __m512i x = broadcast_four(a + r * stride + pair * 8 + 4);
#pragma GCC unroll 4
      for (int p = 0; p < kPanels; ++p) sums[r][p] = _mm512_dpbusd_epi32(sums[r][p], w1[p], x);
    }
  }
}
template <bool kInt8>
constexpr int dot_bias() {
  return kInt8 ? 128 : 8;
}
enum class Quads { kBiased, kSigned };

template <int kRows, int kPanels, int kStep, Quads kQuads>
[[gnu::always_inline]] inline void dot_quads(const uint8_t* codes, size_t panel_stride,
                                             size_t quad_stride, const int8_t* x, size_t x_stride,
                                             int quads, IntLanes (*sums)[kPanels]) {
  __m512i own[kRows][kPanels];  // in registers; through `sums` every update would be a store
#pragma GCC unroll 6
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
    for (int p = 0; p < kPanels; ++p) own[r][p] = sums[r][p];
  }
#pragma GCC unroll 1
  for (int quad = 0; quad < quads; quad += kStep) {
#pragma GCC unroll 4
    for (int step = 0; step < kStep; ++step, codes += quad_stride, x += 4) {
      __m512i w[kPanels];
#pragma GCC unroll 4
      for (int p = 0; p < kPanels; ++p) w[p] = _mm512_loadu_si512(codes + p * panel_stride);
#pragma GCC unroll 6
      for (int r = 0; r < kRows; ++r) {
        const __m512i four = broadcast_four(x + r * x_stride);
#pragma GCC unroll 4
        for (int p = 0; p < kPanels; ++p) {
          own[r][p] = kQuads == Quads::kBiased ? _mm512_dpbusd_epi32(own[r][p], w[p], four)
                                               : _mm512_dpbusd_epi32(own[r][p], four, w[p]);
        }
      }
    }
  }
#pragma GCC unroll 6
  for (int r = 0; r < kRows; ++r) {
#pragma GCC unroll 4
    for (int p = 0; p < kPanels; ++p) sums[r][p] = own[r][p];
  }
}
inline constexpr int kQuadBias = 128;
inline int64_t peak_dots(int64_t rounds, int32_t* sink) {
  constexpr int kChains = 12;
  const __m512i x = _mm512_set1_epi32(static_cast<int32_t>(rounds));
  __m512i sums[kChains];
  for (__m512i& sum : sums) sum = x;
  for (int64_t round = 0; round < rounds; ++round) {
#pragma GCC unroll 12
    for (int i = 0; i < kChains; ++i) sums[i] = _mm512_dpbusd_epi32(sums[i], x, x);
  }
  for (const __m512i& sum : sums) *sink += _mm512_reduce_add_epi32(sum);
  return rounds * kChains * 64;
}
inline void prefetch(const void* p) { _mm_prefetch(static_cast<const char*>(p), _MM_HINT_T1); }

inline constexpr RowBlock kRowBlocks[] = {{1, 2}, {2, 2}, {3, 2}, {4, 2},
                                          {5, 2}, {6, 2}, {7, 2}, {8, 2}};
inline constexpr int kScoreBlock = 12;
inline constexpr int kValueBlock = 6;
inline constexpr int kQuadRows = 6;
inline constexpr int kQuadSums = 24;

}  // namespace sapwood::SAPWOOD_ISA
