// Inputs that hold weights. They must be initialisers, so they are looked up and checked once, when
// the session is created.
#pragma once

#include <cstddef>

#include "base/status.h"
#include "kernels/linear.h"
#include "operators/onnxruntime/kernel_setup.h"

namespace sapwood::ort {

// A packed matrix of `outputs` x `inputs`: uint8 of any shape, with as many bytes as its format
// says, 64-byte aligned.
Status packed_input(const KernelSetup& setup, size_t input, const LinearFormat& format, int outputs,
                    int inputs, LinearWeights* weights);

// The interleaved gate and up matrices of `intermediate` units.
Status gate_up_input(const KernelSetup& setup, size_t input, const LinearFormat& format,
                     int intermediate, int inputs, LinearWeights* weights);

// A float vector; null if it is optional and the node leaves it out.
Status vector_input(const KernelSetup& setup, size_t input, int length, const float** data);

// A float vector whose length says how wide the model is.
Status norm_input(const KernelSetup& setup, size_t input, const float** data, int* length);

}  // namespace sapwood::ort
