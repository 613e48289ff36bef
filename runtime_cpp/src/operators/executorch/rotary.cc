// rotary_table(positions[R], inverse_frequencies[D / 2]) -> rotary[R, D], cosines then sines
// rotary_embedding(x[R, heads, D], rotary[R, D]) -> x rotated, pairs (i, i + D / 2)
#include <algorithm>

#include "operators/executorch/operator.h"

namespace sapwood::executorch {
namespace {

namespace table {

enum : size_t { kPositions, kFrequencies, kOut };
constexpr const char* kNames[] = {"positions", "inverse_frequencies", "out"};

Status compute(Arguments& call, operators::Resources&) {
  Tensor positions, frequencies;
  float* rotary = nullptr;
  SAPWOOD_TRY(call.tensor(kPositions, ScalarType::Int, {kAny}, &positions));
  SAPWOOD_TRY(call.tensor(kFrequencies, ScalarType::Float, {kAny}, &frequencies));
  const int64_t half = frequencies.shape[0];
  SAPWOOD_TRY(call.output(kOut, {positions.shape[0], 2 * half}, &rotary));
  rotary_table(positions.indices(), {frequencies.as<float>(), static_cast<size_t>(half)}, rotary);
  return Status::okay();
}

}  // namespace table

namespace embedding {

enum : size_t { kX, kRotary, kOut };
constexpr const char* kNames[] = {"x", "rotary", "out"};

Status compute(Arguments& call, operators::Resources&) {
  Tensor x, rotary;
  float* y = nullptr;
  SAPWOOD_TRY(call.tensor(kX, ScalarType::Float, {kAny, kAny, kAny}, &x));
  SAPWOOD_TRY(call.tensor(kRotary, ScalarType::Float, {x.shape[0], x.shape[2]}, &rotary));
  const int head_dim = static_cast<int>(x.shape[2]);
  if (head_dim % 16 != 0) {
    return Status(Code::kInvalidArgument,
                  "'x' has heads of " + std::to_string(head_dim) + " values, not a multiple of 16");
  }
  SAPWOOD_TRY(call.output(kOut, x.shape, &y));
  if (y != x.data) std::copy_n(x.as<float>(), x.elements(), y);
  const int heads = static_cast<int>(x.shape[1]);
  // In this thread: waking the team costs more than rotating a few rows.
  for (int64_t item = 0; item < x.shape[0] * heads; ++item) {
    kernels().rotate(y + item * head_dim, rotary.as<float>() + item / heads * head_dim, head_dim);
  }
  return Status::okay();
}

}  // namespace embedding
}  // namespace

const OperatorDefinition kRotaryTable = {"sapwood::rotary_table.out", table::kNames,
                                         table::compute};
const OperatorDefinition kRotaryEmbedding = {"sapwood::rotary_embedding.out", embedding::kNames,
                                             embedding::compute};

}  // namespace sapwood::executorch
