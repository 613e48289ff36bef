// The controller's long loops, over a whole vocabulary or a hidden state, one table per instruction
// set; the same plain loops (softmax_loops_inl.h) compiled again, so the same bits in each.
#pragma once

namespace sapwood {

// Of exp(score - shift): the sum, and the sum weighted by (score - shift), which gives the entropy.
struct SoftmaxSums {
  double mass;
  double moment;  // at most 0
};

struct SoftmaxLoops {
  // block_max[b] = largest of scores[128 b, 128 (b + 1)), -infinity for none; false if a score is
  // NaN or +infinity.
  bool (*block_maxima)(const float* scores, int n, float* block_max);
  // No score is above `shift`.
  SoftmaxSums (*sums)(const float* scores, int n, float shift);
  // Sum of a[i] * b[i].
  double (*dot)(const float* a, const float* b, int n);
};

inline constexpr int kSoftmaxBlock = 128;

extern const SoftmaxLoops kScalarSoftmaxLoops;  // whatever the platform's baseline gives
#if defined(__x86_64__)
extern const SoftmaxLoops kAvx2SoftmaxLoops;
extern const SoftmaxLoops kAvx512SoftmaxLoops;
#endif

// The table that goes with kernels().
const SoftmaxLoops& softmax_loops();

}  // namespace sapwood
