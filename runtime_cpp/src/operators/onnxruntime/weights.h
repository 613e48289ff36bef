// Inputs that hold weights: looked up once where they are initialisers, at each run where not.
#pragma once

#include <cstddef>

#include "base/status.h"
#include "kernels/linear.h"
#include "operators/onnxruntime/kernel_call.h"
#include "operators/onnxruntime/kernel_setup.h"

namespace sapwood::ort {

// A packed matrix: uint8, one axis, as long as its format says.
class PackedInput {
 public:
  // `weights` has everything but the data. Checks an initialiser at once.
  Status prepare(const KernelSetup& setup, size_t input, const LinearWeights& weights);
  // The matrix for this run.
  Status resolve(KernelCall& call, LinearWeights* weights);

 private:
  size_t input_ = 0;
  LinearWeights weights_;  // data is null unless constant
};

// A float vector of `length`; an optional one that the node leaves out resolves to null.
class VectorInput {
 public:
  Status prepare(const KernelSetup& setup, size_t input, int length);
  Status resolve(KernelCall& call, const float** data);

 private:
  size_t input_ = 0;
  int length_ = 0;
  bool given_ = false;
  const float* data_ = nullptr;
};

// A matrix of `outputs` x `inputs` in that format, without its data; checks what the layout asks
// for.
Status describe_matrix(const LinearFormat& format, int outputs, int inputs, LinearWeights* weights);

// The interleaved gate and up matrices of `intermediate` units.
Status describe_gate_up(const LinearFormat& format, int intermediate, int inputs,
                        LinearWeights* weights);

}  // namespace sapwood::ort
