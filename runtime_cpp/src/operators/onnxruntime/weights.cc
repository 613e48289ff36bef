#include "operators/onnxruntime/weights.h"

#include <string>

#include "operators/packed_weights.h"

namespace sapwood::ort {
namespace {

Status initializer(const KernelSetup& setup, size_t input, Tensor* tensor) {
  if (setup.constant(input, tensor)) return Status::okay();
  return Status(Code::kInvalidArgument,
                std::string("input '") + setup.input_name(input) + "' must be an initialiser");
}

}  // namespace

Status packed_input(const KernelSetup& setup, size_t input, const LinearFormat& format, int outputs,
                    int inputs, LinearWeights* weights) {
  Tensor tensor;
  SAPWOOD_TRY(initializer(setup, input, &tensor));
  return operators::open_packed(setup.input_name(input), tensor, format, outputs, inputs, weights);
}

Status gate_up_input(const KernelSetup& setup, size_t input, const LinearFormat& format,
                     int intermediate, int inputs, LinearWeights* weights) {
  SAPWOOD_TRY(operators::check_intermediate(intermediate));
  return packed_input(setup, input, format, 2 * intermediate, inputs, weights);
}

Status vector_input(const KernelSetup& setup, size_t input, int length, const float** data) {
  *data = nullptr;
  if (!setup.has_input(input)) return Status::okay();
  Tensor tensor;
  SAPWOOD_TRY(initializer(setup, input, &tensor));
  const int64_t expected[] = {length};
  if (!shape_fits(tensor.shape, expected)) {
    return Status(Code::kInvalidArgument,
                  describe_misfit(setup.input_name(input), tensor.shape, expected));
  }
  *data = tensor.as<float>();
  return Status::okay();
}

Status norm_input(const KernelSetup& setup, size_t input, const float** data, int* length) {
  Tensor tensor;
  SAPWOOD_TRY(initializer(setup, input, &tensor));
  const int64_t expected[] = {kAny};
  if (!shape_fits(tensor.shape, expected) || tensor.shape[0] < 1) {
    return Status(Code::kInvalidArgument,
                  describe_misfit(setup.input_name(input), tensor.shape, expected));
  }
  *data = tensor.as<float>();
  *length = static_cast<int>(tensor.shape[0]);
  return Status::okay();
}

}  // namespace sapwood::ort
