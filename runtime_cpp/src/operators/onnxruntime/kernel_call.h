// One run of a kernel: its inputs, checked, and its outputs. Allocates nothing unless it fails.
#pragma once

#include <onnxruntime_c_api.h>

#include <initializer_list>
#include <span>

#include "base/status.h"
#include "operators/onnxruntime/port.h"
#include "operators/shapes.h"

namespace sapwood::ort {

// The memory and shape of `value`, which keeps owning both.
Status view_tensor(const OrtApi& api, const OrtValue* value, Tensor* tensor);

class KernelCall {
 public:
  KernelCall(const OrtApi& api, OrtKernelContext* context, std::span<const Port> inputs,
             std::span<const Port> outputs)
      : api_(api), context_(context), inputs_(inputs), outputs_(outputs) {}

  // The input, whatever its shape.
  Status read(size_t index, Tensor* tensor);
  // The input, which must have this shape (kAny: any size).
  Status read(size_t index, std::initializer_list<int64_t> shape, Tensor* tensor);
  // The output's memory, of this shape.
  template <typename T>
  Status write(size_t index, std::span<const int64_t> shape, T** data) {
    void* memory = nullptr;
    SAPWOOD_TRY(write_bytes(index, shape, &memory));
    *data = static_cast<T*>(memory);
    return Status::okay();
  }
  template <typename T>
  Status write(size_t index, std::initializer_list<int64_t> shape, T** data) {
    return write(index, std::span<const int64_t>(shape.begin(), shape.size()), data);
  }

  const char* input_name(size_t index) const { return inputs_[index].name; }

 private:
  Status write_bytes(size_t index, std::span<const int64_t> shape, void** data);

  const OrtApi& api_;
  OrtKernelContext* context_;
  std::span<const Port> inputs_;
  std::span<const Port> outputs_;
};

}  // namespace sapwood::ort
