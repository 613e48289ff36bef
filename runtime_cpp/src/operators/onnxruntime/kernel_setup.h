// What a kernel may ask for while it is made.
#pragma once

#include <onnxruntime_c_api.h>

#include <span>

#include "operators/onnxruntime/attributes.h"
#include "operators/onnxruntime/port.h"
#include "operators/shapes.h"

namespace sapwood::ort {

class KernelSetup {
 public:
  KernelSetup(const OrtApi& api, const OrtKernelInfo* info, std::span<const Port> inputs)
      : attributes_(api, info), api_(api), info_(info), inputs_(inputs) {}

  const Attributes& attributes() const { return attributes_; }
  const char* input_name(size_t index) const { return inputs_[index].name; }

  // Whether the node gives this input at all (optional ones may be left out).
  bool has_input(size_t index) const;

  // The value of an input that never changes, an initialiser; its memory lives as long as the
  // kernel. False if the input is computed or fed.
  bool constant(size_t index, Tensor* value) const;

 private:
  KernelAttributes attributes_;
  const OrtApi& api_;
  const OrtKernelInfo* info_;
  std::span<const Port> inputs_;
};

}  // namespace sapwood::ort
