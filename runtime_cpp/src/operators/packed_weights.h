// Weights as an operator is given them: bytes, whose number and place are checked before use.
#pragma once

#include "base/status.h"
#include "kernels/linear.h"
#include "operators/shapes.h"

namespace sapwood::operators {

// A matrix of `outputs` x `inputs`, packed: as many bytes as its format says, 64-byte aligned.
Status open_packed(const char* input, const Tensor& bytes, const LinearFormat& format, int outputs,
                   int inputs, LinearWeights* weights);

// An error unless so many interleaved units of a gated layer can be packed.
Status check_intermediate(int intermediate);

}  // namespace sapwood::operators
