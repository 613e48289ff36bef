#include "operators/onnxruntime/kernel_setup.h"

#include "operators/onnxruntime/kernel_call.h"

namespace sapwood::ort {

bool KernelSetup::has_input(size_t index) const {
  size_t count = 0;
  if (OrtStatus* status = api_.KernelInfo_GetInputCount(info_, &count)) {
    api_.ReleaseStatus(status);
    return false;
  }
  if (index >= count) return false;
  size_t size = 0;  // of the name with its terminator: 1 where the node leaves the input out
  if (OrtStatus* status = api_.KernelInfo_GetInputName(info_, index, nullptr, &size)) {
    api_.ReleaseStatus(status);
    return false;
  }
  return size > 1;
}

bool KernelSetup::constant(size_t index, Tensor* value) const {
  if (!has_input(index)) return false;
  int is_constant = 0;
  const OrtValue* tensor = nullptr;
  OrtStatus* status = api_.KernelInfoGetConstantInput_tensor(info_, index, &is_constant, &tensor);
  if (status != nullptr) {
    api_.ReleaseStatus(status);
    return false;
  }
  return is_constant != 0 && tensor != nullptr && view_tensor(api_, tensor, value).ok();
}

}  // namespace sapwood::ort
