#include "operators/onnxruntime/weights.h"

#include <limits>
#include <string>

#include "kernels/kernels.h"

namespace sapwood::ort {
namespace {

constexpr size_t kAlignment = 64;

Status initializer(const KernelSetup& setup, size_t input, Tensor* tensor) {
  if (setup.constant(input, tensor)) return Status::okay();
  return Status(Code::kInvalidArgument,
                std::string("input '") + setup.input_name(input) + "' must be an initialiser");
}

}  // namespace

Status packed_input(const KernelSetup& setup, size_t input, const LinearFormat& format, int outputs,
                    int inputs, LinearWeights* weights) {
  const std::string what = std::string("input '") + setup.input_name(input) + "'";
  const std::string form = " (" + std::to_string(outputs) + " x " + std::to_string(inputs) +
                           " in " + std::string(linear_format_name(format)) + ")";
  if (inputs % format.group != 0) {
    return Status(Code::kInvalidArgument, what + " cannot exist" + form +
                                              ": the inputs are no multiple of " +
                                              std::to_string(format.group));
  }
  Tensor tensor;
  SAPWOOD_TRY(initializer(setup, input, &tensor));
  *weights = LinearWeights{tensor.as<uint8_t>(), outputs, inputs, format,
                           &measured_row_plan(kernels(), format)};
  if (tensor.elements() != static_cast<int64_t>(weights->bytes())) {
    return Status(Code::kInvalidArgument, what + " has " + std::to_string(tensor.elements()) +
                                              " bytes, not " + std::to_string(weights->bytes()) +
                                              form);
  }
  if (reinterpret_cast<uintptr_t>(tensor.data) % kAlignment != 0) {
    return Status(Code::kInvalidArgument,
                  what + " does not lie at a multiple of 64 bytes in its file");
  }
  return Status::okay();
}

Status gate_up_input(const KernelSetup& setup, size_t input, const LinearFormat& format,
                     int intermediate, int inputs, LinearWeights* weights) {
  if (intermediate % kPanel != 0 || intermediate > std::numeric_limits<int>::max() / 2) {
    return Status(Code::kInvalidArgument, "attribute 'intermediate' is " +
                                              std::to_string(intermediate) +
                                              ", not a multiple of 16 below 2^30");
  }
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
