#include "operators/executorch/arguments.h"

#include <executorch/runtime/core/exec_aten/util/scalar_type_util.h>
#include <executorch/runtime/core/exec_aten/util/tensor_util.h>

#include <limits>
#include <optional>

#include "operators/packed_weights.h"

namespace sapwood::executorch {

using ::executorch::runtime::Error;
using ::executorch::runtime::toString;

Status Arguments::wrong(size_t index, const std::string& what) const {
  return Status(Code::kInvalidArgument, std::string("'") + names_[index] + "' " + what);
}

Status Arguments::tensor(size_t index, ScalarType type, Tensor* tensor) {
  if (!stack_[index]->isTensor()) return wrong(index, "is no tensor");
  const ::executorch::aten::Tensor& value = stack_[index]->toTensor();
  if (value.scalar_type() != type) {
    return wrong(index, std::string("is of type ") + toString(value.scalar_type()) + ", not " +
                            toString(type));
  }
  if (static_cast<size_t>(value.dim()) > kMostAxes) {
    return wrong(index, "has " + std::to_string(value.dim()) + " axes");
  }
  std::array<int64_t, kMostAxes>& sizes = sizes_[index];
  for (ssize_t axis = 0; axis < value.dim(); ++axis) sizes[axis] = value.size(axis);
  *tensor = Tensor{value.const_data_ptr(), {sizes.data(), static_cast<size_t>(value.dim())}};
  return Status::okay();
}

Status Arguments::tensor(size_t index, ScalarType type, std::initializer_list<int64_t> shape,
                         Tensor* out) {
  SAPWOOD_TRY(tensor(index, type, out));
  return operators::expect_shape(names_[index], *out, shape);
}

Status Arguments::vector(size_t index, int length, const float** data) {
  *data = nullptr;
  if (!has(index)) return Status::okay();
  Tensor value;
  SAPWOOD_TRY(tensor(index, ScalarType::Float, {length}, &value));
  *data = value.as<float>();
  return Status::okay();
}

Status Arguments::packed(size_t index, size_t format_index, int outputs, int inputs,
                         LinearWeights* weights) {
  std::string_view format_name;
  SAPWOOD_TRY(text(format_index, &format_name));
  const std::optional<LinearFormat> format = parse_linear_format(format_name);
  if (!format) {
    return wrong(format_index, "is '" + std::string(format_name) +
                                   "', not a format this build knows: update Sapwood");
  }
  Tensor bytes;
  SAPWOOD_TRY(tensor(index, ScalarType::Byte, &bytes));
  return operators::open_packed(names_[index], bytes, *format, outputs, inputs, weights);
}

Status Arguments::cache(size_t first, int rows, int kv_heads, int head_dim,
                        operators::Resources& resources, operators::CacheCall* call) {
  operators::CacheArguments arguments;
  SAPWOOD_TRY(tensor(first, ScalarType::Int, &arguments.slots));
  SAPWOOD_TRY(tensor(first + 1, ScalarType::Int, &arguments.context_slots));
  SAPWOOD_TRY(tensor(first + 2, ScalarType::Int, &arguments.path_slots));
  SAPWOOD_TRY(tensor(first + 3, ScalarType::Int, &arguments.path_ranges));
  SAPWOOD_TRY(tensor(first + 4, ScalarType::Half, &arguments.past_keys));
  SAPWOOD_TRY(tensor(first + 5, ScalarType::Half, &arguments.past_values));
  SAPWOOD_TRY(operators::open_cache(arguments, rows, kv_heads, head_dim, resources, call));
  SAPWOOD_TRY(operators::check_cache_alignment(arguments.past_keys.data));
  SAPWOOD_TRY(operators::check_cache_alignment(arguments.past_values.data));
  // The cache is the caller's and written in place; ExecuTorch has no writable inputs.
  call->kv.keys = static_cast<uint16_t*>(const_cast<void*>(arguments.past_keys.data));
  call->kv.values = static_cast<uint16_t*>(const_cast<void*>(arguments.past_values.data));
  return Status::okay();
}

Status Arguments::integer(size_t index, int minimum, int* value) const {
  if (!stack_[index]->isInt()) return wrong(index, "is no integer");
  const int64_t given = stack_[index]->toInt();
  if (given < minimum || given > std::numeric_limits<int>::max()) {
    return wrong(
        index, "is " + std::to_string(given) + "; it must be at least " + std::to_string(minimum));
  }
  *value = static_cast<int>(given);
  return Status::okay();
}

Status Arguments::real(size_t index, float* value) const {
  if (!stack_[index]->isDouble()) return wrong(index, "is no floating-point number");
  *value = static_cast<float>(stack_[index]->toDouble());
  return Status::okay();
}

Status Arguments::text(size_t index, std::string_view* value) const {
  if (!stack_[index]->isString()) return wrong(index, "is no text");
  *value = stack_[index]->toString();
  return Status::okay();
}

Status Arguments::activation(size_t index, Activation* value) const {
  std::string_view name;
  SAPWOOD_TRY(text(index, &name));
  if (name != "silu" && name != "gelu_tanh") {
    return wrong(index, "is '" + std::string(name) + "', not 'silu' or 'gelu_tanh'");
  }
  *value = name == "silu" ? Activation::kSilu : Activation::kGeluTanh;
  return Status::okay();
}

Status Arguments::output_bytes(size_t index, ScalarType type, std::span<const int64_t> shape,
                               void** data) {
  if (!stack_[index]->isTensor()) return wrong(index, "is no tensor");
  ::executorch::aten::Tensor& value = stack_[index]->toTensor();
  if (value.scalar_type() != type) {
    return wrong(index, std::string("is of type ") + toString(value.scalar_type()) + ", not " +
                            toString(type));
  }
  std::array<::executorch::aten::SizesType, kMostAxes> sizes;
  for (size_t axis = 0; axis < shape.size(); ++axis) {
    sizes[axis] = static_cast<::executorch::aten::SizesType>(shape[axis]);
  }
  if (::executorch::runtime::resize_tensor(value, {sizes.data(), shape.size()}) != Error::Ok) {
    return wrong(index, "cannot have the shape " + operators::describe_shape(shape) +
                            ": the graph was exported for less");
  }
  *data = value.mutable_data_ptr();
  return Status::okay();
}

}  // namespace sapwood::executorch
