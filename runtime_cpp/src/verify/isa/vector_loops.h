// The passes over a whole vocabulary, one table per instruction set. Same bits in each: they are
// the same plain loops (vector_loops_inl.h), compiled again.
#pragma once

namespace sapwood {

struct VectorLoops {
  // Largest of n values, -infinity for none; *bad becomes true when one is NaN or +infinity.
  float (*largest)(const float* values, int n, bool* bad);
  // Sum of exp(values), all at most 0, in a fixed order.
  double (*mass)(const float* values, int n);
  // out = (logits - largest) / temperature.
  void (*scale)(const float* logits, int n, float largest, float temperature, float* out);
};

extern const VectorLoops kScalarLoops;  // whatever the platform's baseline gives
#if defined(__x86_64__)
extern const VectorLoops kAvx2Loops;
extern const VectorLoops kAvx512Loops;
#endif

// The table that goes with kernels(): one choice of instruction set for the whole process.
const VectorLoops& vector_loops();

}  // namespace sapwood
