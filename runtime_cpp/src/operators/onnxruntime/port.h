// An operator's input or output.
#pragma once

#include <onnxruntime_c_api.h>

namespace sapwood::ort {

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
