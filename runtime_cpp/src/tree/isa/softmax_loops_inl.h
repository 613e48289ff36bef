// Included once by each softmax_loops_<instruction set>.cc. Sixteen lanes whatever the machine's
// vectors are: that fixes the order of every sum. No library function is called and nothing has
// external linkage but the table: see cmake/SapwoodCompiler.cmake.
#include <cstdint>

#include "tree/isa/softmax_loops.h"

namespace sapwood {
namespace {

constexpr int kLanes = 16;
constexpr float kLowest = -__builtin_inff();
constexpr float kLargestFloat = 3.402823466e+38f;

using Floats = float __attribute__((vector_size(kLanes * 4)));
using Ints = int32_t __attribute__((vector_size(kLanes * 4)));
using UnalignedFloats = float __attribute__((vector_size(kLanes * 4), aligned(4), may_alias));

// exp(x) for x <= 0, to within 3e-6: an estimate of draft-side mass, cheaper than the sampler's.
// 2^(x / ln 2) by a polynomial in the fraction (Taylor's, to the fifth power).
__attribute__((always_inline)) inline void exponential(const Floats& x, Floats& out) {
  const Floats bounded = x < -87.f ? Floats{} - 87.f : x;
  const Ints n = __builtin_convertvector(bounded * 1.44269504f - 0.5f, Ints);
  const Floats r = bounded - __builtin_convertvector(n, Floats) * 0.69314718f;
  Floats sum = r * (1.f / 120.f) + 1.f / 24.f;
  sum = sum * r + 1.f / 6.f;
  sum = sum * r + 0.5f;
  sum = sum * r + 1.f;
  sum = sum * r + 1.f;
  out = x < -87.f ? Floats{} : sum * reinterpret_cast<Floats>((n + 127) << 23);
}

__attribute__((always_inline)) inline void load(const float* from, Floats& to) {
  to = *reinterpret_cast<const UnalignedFloats*>(from);
}

bool block_maxima(const float* scores, int n, float* block_max) {
  Ints wrong = {};
  bool bad = false;
  for (int begin = 0, block = 0; begin < n; begin += kSoftmaxBlock, ++block) {
    const int end = begin + kSoftmaxBlock < n ? begin + kSoftmaxBlock : n;
    Floats best = Floats{} + kLowest;
    int i = begin;
    for (; i + kLanes <= end; i += kLanes) {
      Floats value;
      load(scores + i, value);
      best = value > best ? value : best;
      wrong |= ~(value <= kLargestFloat);  // true for NaN as well
    }
    float top = kLowest;
    for (int j = 0; j < kLanes; ++j) top = best[j] > top ? best[j] : top;
    for (; i < end; ++i) {
      top = scores[i] > top ? scores[i] : top;
      bad = bad || !(scores[i] <= kLargestFloat);
    }
    block_max[block] = top;
  }
  for (int j = 0; j < kLanes; ++j) bad = bad || wrong[j] != 0;
  return !bad;
}

SoftmaxSums sums(const float* scores, int n, float shift) {
  double mass = 0;
  double moment = 0;
  // Floats add up 1,024 scores at a time, doubles the rest.
  constexpr int kStretch = 1024;
  for (int begin = 0; begin < n; begin += kStretch) {
    const int end = begin + kStretch < n ? begin + kStretch : n;
    Floats stretch_mass = {};
    Floats stretch_moment = {};
    for (int i = begin; i < end; i += kLanes) {
      Floats x;
      if (i + kLanes <= end) {
        load(scores + i, x);
      } else {
        x = Floats{} + kLowest;
        for (int j = 0; i + j < end; ++j) x[j] = scores[i + j];
      }
      x = x - shift;
      Floats weight;
      exponential(x, weight);
      stretch_mass += weight;
      stretch_moment += weight * (x < -87.f ? Floats{} : x);
    }
    float one_mass = 0;
    float one_moment = 0;
    for (int j = 0; j < kLanes; ++j) {
      one_mass += stretch_mass[j];
      one_moment += stretch_moment[j];
    }
    mass += one_mass;
    moment += one_moment;
  }
  return {mass, moment};
}

double dot(const float* a, const float* b, int n) {
  double sum = 0;
  // As in sums(): floats add up a stretch, doubles the stretches.
  constexpr int kStretch = 1024;
  for (int begin = 0; begin < n; begin += kStretch) {
    const int end = begin + kStretch < n ? begin + kStretch : n;
    Floats stretch = {};
    int i = begin;
    for (; i + kLanes <= end; i += kLanes) {
      Floats x;
      Floats y;
      load(a + i, x);
      load(b + i, y);
      stretch += x * y;
    }
    for (int j = 0; i + j < end; ++j) stretch[j] += a[i + j] * b[i + j];
    float one = 0;
    for (int j = 0; j < kLanes; ++j) one += stretch[j];
    sum += one;
  }
  return sum;
}

constexpr SoftmaxLoops kLoops = {block_maxima, sums, dot};

}  // namespace
}  // namespace sapwood
