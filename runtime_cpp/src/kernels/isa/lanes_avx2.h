// Sixteen lanes in two AVX2 registers; see lanes_scalar.h for what each function means.
// With SAPWOOD_AVX_VNNI the dot products use the VEX form of VPDPBUSD.
#pragma once

#include <immintrin.h>

#include <cstdint>
#include <cstring>

#include "kernels/row_plan.h"

namespace sapwood::SAPWOOD_ISA {

struct Lanes {
  __m256 a, b;
};
struct IntLanes {
  __m256i a, b;
};

inline Lanes set1(float x) { return {_mm256_set1_ps(x), _mm256_set1_ps(x)}; }
inline Lanes load(const float* p) { return {_mm256_loadu_ps(p), _mm256_loadu_ps(p + 8)}; }
inline void store(float* p, Lanes x) {
  _mm256_storeu_ps(p, x.a);
  _mm256_storeu_ps(p + 8, x.b);
}
inline Lanes add(Lanes x, Lanes y) { return {_mm256_add_ps(x.a, y.a), _mm256_add_ps(x.b, y.b)}; }
inline Lanes sub(Lanes x, Lanes y) { return {_mm256_sub_ps(x.a, y.a), _mm256_sub_ps(x.b, y.b)}; }
inline Lanes mul(Lanes x, Lanes y) { return {_mm256_mul_ps(x.a, y.a), _mm256_mul_ps(x.b, y.b)}; }
inline Lanes div(Lanes x, Lanes y) { return {_mm256_div_ps(x.a, y.a), _mm256_div_ps(x.b, y.b)}; }
inline Lanes max(Lanes x, Lanes y) { return {_mm256_max_ps(x.a, y.a), _mm256_max_ps(x.b, y.b)}; }
inline Lanes min(Lanes x, Lanes y) { return {_mm256_min_ps(x.a, y.a), _mm256_min_ps(x.b, y.b)}; }
inline Lanes abs(Lanes x) {
  const __m256 sign = _mm256_set1_ps(-0.f);
  return {_mm256_andnot_ps(sign, x.a), _mm256_andnot_ps(sign, x.b)};
}
inline Lanes fma(Lanes x, Lanes y, Lanes z) {
  return {_mm256_fmadd_ps(x.a, y.a, z.a), _mm256_fmadd_ps(x.b, y.b, z.b)};
}
inline Lanes load_half(const uint16_t* p) {
  return {_mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p))),
          _mm256_cvtph_ps(_mm_loadu_si128(reinterpret_cast<const __m128i*>(p + 8)))};
}
inline void store_half(uint16_t* p, Lanes x) {
  constexpr int kNearest = _MM_FROUND_TO_NEAREST_INT | _MM_FROUND_NO_EXC;
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p), _mm256_cvtps_ph(x.a, kNearest));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p + 8), _mm256_cvtps_ph(x.b, kNearest));
}
inline IntLanes set1_int(int32_t x) { return {_mm256_set1_epi32(x), _mm256_set1_epi32(x)}; }
inline IntLanes load_int(const int32_t* p) {
  return {_mm256_loadu_si256(reinterpret_cast<const __m256i*>(p)),
          _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p + 8))};
}
inline void store_int(int32_t* p, IntLanes x) {
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p), x.a);
  _mm256_storeu_si256(reinterpret_cast<__m256i*>(p + 8), x.b);
}
inline Lanes to_float(IntLanes x) { return {_mm256_cvtepi32_ps(x.a), _mm256_cvtepi32_ps(x.b)}; }
inline IntLanes to_int(Lanes x) { return {_mm256_cvtps_epi32(x.a), _mm256_cvtps_epi32(x.b)}; }
inline Lanes power_of_two(IntLanes n) {
  const __m256i bias = _mm256_set1_epi32(127);
  return {_mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(n.a, bias), 23)),
          _mm256_castsi256_ps(_mm256_slli_epi32(_mm256_add_epi32(n.b, bias), 23))};
}
inline int32_t store_bytes(int8_t* p, IntLanes x) {
  const __m256i words = _mm256_permute4x64_epi64(_mm256_packs_epi32(x.a, x.b), 0xd8);
  const __m128i bytes =
      _mm_packs_epi16(_mm256_castsi256_si128(words), _mm256_extracti128_si256(words, 1));
  _mm_storeu_si128(reinterpret_cast<__m128i*>(p), bytes);
  const __m256i eight = _mm256_add_epi32(x.a, x.b);
  __m128i four = _mm_add_epi32(_mm256_castsi256_si128(eight), _mm256_extracti128_si256(eight, 1));
  four = _mm_add_epi32(four, _mm_shuffle_epi32(four, 0x4e));
  four = _mm_add_epi32(four, _mm_shuffle_epi32(four, 0xb1));
  return _mm_cvtsi128_si32(four);
}
inline float reduce_add(Lanes x) {
  const __m256 eight = _mm256_add_ps(x.a, x.b);
  const __m128 four = _mm_add_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  const __m128 two = _mm_add_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_add_ss(two, _mm_movehdup_ps(two)));
}
inline float reduce_max(Lanes x) {
  const __m256 eight = _mm256_max_ps(x.a, x.b);
  const __m128 four = _mm_max_ps(_mm256_castps256_ps128(eight), _mm256_extractf128_ps(eight, 1));
  const __m128 two = _mm_max_ps(four, _mm_movehl_ps(four, four));
  return _mm_cvtss_f32(_mm_max_ss(two, _mm_movehdup_ps(two)));
}

inline __m256i dot_quad(__m256i sum, __m256i w, __m256i a) {
#ifdef SAPWOOD_AVX_VNNI
  return _mm256_dpbusd_avx_epi32(sum, w, a);
#else
  return _mm256_add_epi32(sum, _mm256_madd_epi16(_mm256_maddubs_epi16(w, a), _mm256_set1_epi16(1)));
#endif
}

#ifndef SAPWOOD_AVX_VNNI
// VPMADDUBSW saturates at 16 bits, which full bytes can reach. |w - 128| * a with the sign moved to
// the activation cannot: 2 * 128 * 127 fits.
inline __m256i dot_quad_biased(__m256i sum, __m256i w, __m256i a) {
  const __m256i centred = _mm256_xor_si256(w, _mm256_set1_epi8(static_cast<char>(0x80)));
  return dot_quad(sum, _mm256_abs_epi8(centred), _mm256_sign_epi8(a, centred));
}
#endif

template <int kRows, int kPanels, bool kInt8>
[[gnu::always_inline]] inline void dot_part(const uint8_t* const* panels, const int8_t* a,
                                            size_t stride, IntLanes (*sums)[kPanels]) {
  const __m256i low = _mm256_set1_epi8(15);
  const auto load = [](const uint8_t* p) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
  };
  const auto dot = [](__m256i sum, __m256i w, __m256i x) {
#ifndef SAPWOOD_AVX_VNNI
    if constexpr (kInt8) return dot_quad_biased(sum, w, x);
#endif
    return dot_quad(sum, w, x);
  };
#pragma GCC unroll 8
  for (int quad = 0; quad < 8; ++quad) {
    IntLanes w[kPanels];
#pragma GCC unroll 2
    for (int p = 0; p < kPanels; ++p) {
      const uint8_t* codes = panels[p] + (kInt8 ? quad : quad / 2) * 64;
      w[p] = {load(codes), load(codes + 32)};
      if constexpr (!kInt8) {
        if (quad % 2 == 1) w[p] = {_mm256_srli_epi16(w[p].a, 4), _mm256_srli_epi16(w[p].b, 4)};
        w[p] = {_mm256_and_si256(w[p].a, low), _mm256_and_si256(w[p].b, low)};
      }
    }
#pragma GCC unroll 8
    for (int r = 0; r < kRows; ++r) {
      int32_t four;
      std::memcpy(&four, a + r * stride + quad * 4, sizeof four);
      const __m256i x = _mm256_set1_epi32(four);
#pragma GCC unroll 2
      for (int p = 0; p < kPanels; ++p) {
        sums[r][p] = {dot(sums[r][p].a, w[p].a, x), dot(sums[r][p].b, w[p].b, x)};
      }
    }
  }
}
template <bool kInt8>
constexpr int dot_bias() {
#ifndef SAPWOOD_AVX_VNNI
  if constexpr (kInt8) return 0;
#endif
  return kInt8 ? 128 : 8;
}
enum class Quads { kBiased, kSigned };

template <int kRows, int kPanels, int kStep, Quads kQuads>
[[gnu::always_inline]] inline void dot_quads(const uint8_t* codes, size_t panel_stride,
                                             size_t quad_stride, const int8_t* x, size_t x_stride,
                                             int quads, IntLanes (*sums)[kPanels]) {
  const auto load = [](const uint8_t* p) {
    return _mm256_loadu_si256(reinterpret_cast<const __m256i*>(p));
  };
  const auto dot = [](__m256i sum, __m256i w, __m256i four) {
    if constexpr (kQuads == Quads::kSigned) return dot_quad(sum, four, w);
#ifndef SAPWOOD_AVX_VNNI
    return dot_quad_biased(sum, w, four);
#else
    return dot_quad(sum, w, four);
#endif
  };
#pragma GCC unroll 1
  for (int quad = 0; quad < quads; ++quad, codes += quad_stride, x += 4) {
    IntLanes w[kPanels];
#pragma GCC unroll 4
    for (int p = 0; p < kPanels; ++p) {
      w[p] = {load(codes + p * panel_stride), load(codes + p * panel_stride + 32)};
    }
#pragma GCC unroll 6
    for (int r = 0; r < kRows; ++r) {
      int32_t bytes;
      std::memcpy(&bytes, x + r * x_stride, sizeof bytes);
      const __m256i four = _mm256_set1_epi32(bytes);
#pragma GCC unroll 4
      for (int p = 0; p < kPanels; ++p) {
        sums[r][p] = {dot(sums[r][p].a, w[p].a, four), dot(sums[r][p].b, w[p].b, four)};
      }
    }
  }
}
#ifdef SAPWOOD_AVX_VNNI
inline constexpr int kQuadBias = 128;
#else
inline constexpr int kQuadBias = 0;
#endif
inline int64_t peak_dots(int64_t rounds, int32_t* sink) {
  constexpr int kChains = 10;
  const __m256i x = _mm256_set1_epi32(static_cast<int32_t>(rounds));
  __m256i sums[kChains];
  for (__m256i& sum : sums) sum = x;
  for (int64_t round = 0; round < rounds; ++round) {
#pragma GCC unroll 10
    for (int i = 0; i < kChains; ++i) sums[i] = dot_quad(sums[i], sums[i], x);
  }
  for (const __m256i& sum : sums) *sink += _mm256_extract_epi32(sum, 0);
  return rounds * kChains * 32;
}
inline void prefetch(const void* p) { _mm_prefetch(static_cast<const char*>(p), _MM_HINT_T0); }

inline constexpr RowBlock kRowBlocks[] = {{1, 2}, {2, 2}, {3, 2}, {4, 2}, {4, 1}};
inline constexpr int kScoreBlock = 6;
inline constexpr int kValueBlock = 2;
inline constexpr int kQuadRows = 3;
inline constexpr int kQuadSums = 6;

}  // namespace sapwood::SAPWOOD_ISA
