// rms_norm(x[R, n] or [R, heads, n], weight[n], epsilon) -> x normed over its last axis
#include "operators/executorch/operator.h"

namespace sapwood::executorch {
namespace {

enum : size_t { kX, kWeight, kEpsilon, kOut };
constexpr const char* kNames[] = {"x", "weight", "epsilon", "out"};

Status compute(Arguments& call, operators::Resources&) {
  Tensor x, weight;
  float epsilon = 0.f;
  float* y = nullptr;
  SAPWOOD_TRY(call.tensor(kX, ScalarType::Float, &x));
  if (x.shape.size() != 2 && x.shape.size() != 3) {
    return Status(Code::kInvalidArgument,
                  "'x' has " + std::to_string(x.shape.size()) + " axes, not 2 or 3");
  }
  SAPWOOD_TRY(call.tensor(kWeight, ScalarType::Float, {x.shape.back()}, &weight));
  SAPWOOD_TRY(call.real(kEpsilon, &epsilon));
  SAPWOOD_TRY(call.output(kOut, x.shape, &y));
  const int columns = static_cast<int>(x.shape.back());
  if (columns == 0) return Status::okay();
  kernels().rms_norm(x.as<float>(), columns, weight.as<float>(), epsilon,
                     static_cast<int>(x.elements() / columns), columns, y, columns);
  return Status::okay();
}

}  // namespace

const OperatorDefinition kRmsNorm = {"sapwood::rms_norm.out", kNames, compute};

}  // namespace sapwood::executorch
