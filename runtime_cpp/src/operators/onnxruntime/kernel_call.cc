#include "operators/onnxruntime/kernel_call.h"

#include <string>

#include "operators/onnxruntime/ort_status.h"

namespace sapwood::ort {

Status view_tensor(const OrtApi& api, const OrtValue* value, Tensor* tensor) {
  ONNXTensorElementDataType type = ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED;
  const int64_t* sizes = nullptr;
  size_t rank = 0;
  SAPWOOD_TRY_ORT(api, api.GetTensorElementTypeAndShapeDataReference(value, &type, &sizes, &rank));
  void* data = nullptr;  // the mutable accessor is the only one; we hand it on as const
  SAPWOOD_TRY_ORT(api, api.GetTensorMutableData(const_cast<OrtValue*>(value), &data));
  *tensor = Tensor{data, {sizes, rank}};
  return Status::okay();
}

Status KernelCall::read(size_t index, Tensor* tensor) {
  const OrtValue* value = nullptr;
  SAPWOOD_TRY_ORT(api_, api_.KernelContext_GetInput(context_, index, &value));
  if (value == nullptr) {
    return Status(Code::kInvalidArgument,
                  std::string("input '") + inputs_[index].name + "' is missing");
  }
  return view_tensor(api_, value, tensor);
}

Status KernelCall::read(size_t index, std::initializer_list<int64_t> shape, Tensor* tensor) {
  SAPWOOD_TRY(read(index, tensor));
  const std::span<const int64_t> expected(shape.begin(), shape.size());
  if (!shape_fits(tensor->shape, expected)) {
    return Status(Code::kInvalidArgument,
                  describe_misfit(inputs_[index].name, tensor->shape, expected));
  }
  return Status::okay();
}

Status KernelCall::write_bytes(size_t index, std::span<const int64_t> shape, void** data) {
  OrtValue* value = nullptr;
  SAPWOOD_TRY_ORT(
      api_, api_.KernelContext_GetOutput(context_, index, shape.data(), shape.size(), &value));
  if (value == nullptr) {
    return Status(Code::kInvalidArgument,
                  std::string("output '") + outputs_[index].name + "' must be asked for");
  }
  return take_status(api_, api_.GetTensorMutableData(value, data));
}

}  // namespace sapwood::ort
