// Single outputs of packed matrices (linear.h): compared, and copied from one matrix to another.
#pragma once

#include <cstdint>

#include "kernels/linear.h"

namespace sapwood {

// Both matrices are of the same format and inputs; `data` is `to`'s.
void copy_packed_row(const LinearWeights& from, int output, const LinearWeights& to, uint8_t* data,
                     int to_output);

// Whether two outputs hold the same codes, scales and minima. False for matrices that differ in
// format or inputs.
bool same_packed_row(const LinearWeights& a, int a_output, const LinearWeights& b, int b_output);

}  // namespace sapwood
