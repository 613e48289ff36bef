// Reading one row of a packed table back as floats.
#pragma once

#include "kernels/linear.h"

namespace sapwood {

// out[0 .. table.inputs) = the dequantised weights of output `token`, times `scale`.
void embed_token(const LinearWeights& table, int token, float scale, float* out);

}  // namespace sapwood
