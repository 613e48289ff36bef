#include "operators/onnxruntime/weights.h"

#include <limits>
#include <string>

namespace sapwood::ort {
namespace {

constexpr size_t kAlignment = 64;

Status check_packed(const char* name, const Tensor& tensor, const LinearWeights& weights) {
  const int64_t expected[] = {static_cast<int64_t>(weights.bytes())};
  if (!shape_fits(tensor.shape, expected)) {
    return Status(Code::kInvalidArgument,
                  describe_misfit(name, tensor.shape, expected) + " (" +
                      std::to_string(weights.outputs) + " x " + std::to_string(weights.inputs) +
                      " in " + std::string(linear_format_name(weights.format)) + ")");
  }
  if (reinterpret_cast<uintptr_t>(tensor.data) % kAlignment != 0) {
    return Status(Code::kInvalidArgument, std::string("input '") + name +
                                              "' does not lie at a multiple of 64 bytes; make it "
                                              "an initialiser (in an external file: aligned)");
  }
  return Status::okay();
}

Status check_vector(const char* name, const Tensor& tensor, int length) {
  const int64_t expected[] = {length};
  if (shape_fits(tensor.shape, expected)) return Status::okay();
  return Status(Code::kInvalidArgument, describe_misfit(name, tensor.shape, expected));
}

}  // namespace

Status PackedInput::prepare(const KernelSetup& setup, size_t input, const LinearWeights& weights) {
  input_ = input;
  weights_ = weights;
  Tensor tensor;
  if (!setup.constant(input, &tensor)) return Status::okay();
  SAPWOOD_TRY(check_packed(setup.input_name(input), tensor, weights_));
  weights_.data = tensor.as<uint8_t>();
  return Status::okay();
}

Status PackedInput::resolve(KernelCall& call, LinearWeights* weights) {
  *weights = weights_;
  if (weights_.data != nullptr) return Status::okay();
  Tensor tensor;
  SAPWOOD_TRY(call.read(input_, &tensor));
  SAPWOOD_TRY(check_packed(call.input_name(input_), tensor, weights_));
  weights->data = tensor.as<uint8_t>();
  return Status::okay();
}

Status VectorInput::prepare(const KernelSetup& setup, size_t input, int length) {
  input_ = input;
  length_ = length;
  given_ = setup.has_input(input);
  Tensor tensor;
  if (!setup.constant(input, &tensor)) return Status::okay();
  SAPWOOD_TRY(check_vector(setup.input_name(input), tensor, length_));
  data_ = tensor.as<float>();
  return Status::okay();
}

Status VectorInput::resolve(KernelCall& call, const float** data) {
  *data = data_;
  if (data_ != nullptr || !given_) return Status::okay();
  Tensor tensor;
  SAPWOOD_TRY(call.read(input_, &tensor));
  SAPWOOD_TRY(check_vector(call.input_name(input_), tensor, length_));
  *data = tensor.as<float>();
  return Status::okay();
}

Status describe_matrix(const LinearFormat& format, int outputs, int inputs,
                       LinearWeights* weights) {
  if (inputs % format.group != 0) {
    return Status(Code::kInvalidArgument,
                  "a matrix with " + std::to_string(inputs) + " inputs cannot be packed as " +
                      std::string(linear_format_name(format)) + ": not a multiple of " +
                      std::to_string(format.group));
  }
  *weights = LinearWeights{nullptr, outputs, inputs, format};
  return Status::okay();
}

Status describe_gate_up(const LinearFormat& format, int intermediate, int inputs,
                        LinearWeights* weights) {
  if (intermediate % kPanel != 0 || intermediate > std::numeric_limits<int>::max() / 2) {
    return Status(Code::kInvalidArgument, "attribute 'intermediate' is " +
                                              std::to_string(intermediate) +
                                              ", not a multiple of 16 below 2^30");
  }
  return describe_matrix(format, 2 * intermediate, inputs, weights);
}

}  // namespace sapwood::ort
