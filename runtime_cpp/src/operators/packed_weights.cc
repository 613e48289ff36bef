#include "operators/packed_weights.h"

#include <limits>
#include <string>

#include "kernels/kernels.h"

namespace sapwood::operators {
namespace {

constexpr size_t kAlignment = 64;

std::string described(const LinearFormat& format, int outputs, int inputs) {
  return " (" + std::to_string(outputs) + " x " + std::to_string(inputs) + " in " +
         std::string(linear_format_name(format)) + ")";
}

}  // namespace

Status open_packed(const char* input, const Tensor& bytes, const LinearFormat& format, int outputs,
                   int inputs, LinearWeights* weights) {
  const auto error = [&](const std::string& what) {
    return Status(Code::kInvalidArgument, std::string("input '") + input + "'" + what);
  };
  if (inputs % format.group != 0) {
    return error(" cannot exist" + described(format, outputs, inputs) +
                 ": the inputs are no multiple of " + std::to_string(format.group));
  }
  *weights = LinearWeights{bytes.as<uint8_t>(), outputs, inputs, format,
                           &measured_row_plan(kernels(), format)};
  if (bytes.elements() != static_cast<int64_t>(weights->bytes())) {
    return error(" has " + std::to_string(bytes.elements()) + " bytes, not " +
                 std::to_string(weights->bytes()) + described(format, outputs, inputs));
  }
  if (reinterpret_cast<uintptr_t>(bytes.data) % kAlignment != 0) {
    return error(" does not lie at a multiple of 64 bytes in its file");
  }
  return Status::okay();
}

Status check_intermediate(int intermediate) {
  if (intermediate % kPanel == 0 && intermediate <= std::numeric_limits<int>::max() / 2) {
    return Status::okay();
  }
  return Status(Code::kInvalidArgument, "attribute 'intermediate' is " +
                                            std::to_string(intermediate) +
                                            ", not a multiple of 16 below 2^30");
}

}  // namespace sapwood::operators
