// An operator's input or output.
#pragma once

#include <onnxruntime_c_api.h>

#include "operators/resources.h"
#include "operators/shapes.h"

namespace sapwood::ort {

using operators::describe_misfit;
using operators::describe_shape;
using operators::kAny;
using operators::Resources;
using operators::shape_fits;
using operators::Tensor;

struct Port {
  const char* name;
  ONNXTensorElementDataType type;
  bool optional = false;
};

inline constexpr ONNXTensorElementDataType kFloat = ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT;
inline constexpr ONNXTensorElementDataType kHalf = ONNX_TENSOR_ELEMENT_DATA_TYPE_FLOAT16;
inline constexpr ONNXTensorElementDataType kIndex = ONNX_TENSOR_ELEMENT_DATA_TYPE_INT32;
inline constexpr ONNXTensorElementDataType kBytes = ONNX_TENSOR_ELEMENT_DATA_TYPE_UINT8;

}  // namespace sapwood::ort
