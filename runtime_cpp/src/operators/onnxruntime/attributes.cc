#include "operators/onnxruntime/attributes.h"

#include <limits>

namespace sapwood::ort {

Status Attributes::found(OrtStatus* status, const char* name, const char* type) const {
  if (status == nullptr) return Status::okay();
  api_.ReleaseStatus(status);
  return Status(Code::kInvalidArgument,
                std::string("attribute '") + name + "' (" + type + ") is missing");
}

Status Attributes::integer(const char* name, int minimum, int* value) const {
  int64_t wide = 0;
  SAPWOOD_TRY(found(read(name, &wide), name, "int"));
  if (wide < minimum || wide > std::numeric_limits<int>::max()) {
    return Status(Code::kInvalidArgument, std::string("attribute '") + name + "' is " +
                                              std::to_string(wide) + ", but must be at least " +
                                              std::to_string(minimum) + " and below 2^31");
  }
  *value = static_cast<int>(wide);
  return Status::okay();
}

Status Attributes::real(const char* name, float* value) const {
  return found(read(name, value), name, "float");
}

Status Attributes::text(const char* name, std::string* value) const {
  return found(read(name, value), name, "string");
}

Status Attributes::linear_format(const char* name, LinearFormat* value) const {
  std::string text_value;
  SAPWOOD_TRY(text(name, &text_value));
  const std::optional<LinearFormat> format = parse_linear_format(text_value);
  if (!format) {
    return Status(Code::kInvalidArgument,
                  std::string("attribute '") + name + "' is '" + text_value +
                      "', which is no format of packed weights this build knows");
  }
  *value = *format;
  return Status::okay();
}

Status Attributes::activation(const char* name, Activation* value) const {
  std::string text_value;
  SAPWOOD_TRY(text(name, &text_value));
  if (text_value == "silu") {
    *value = Activation::kSilu;
  } else if (text_value == "gelu_tanh") {
    *value = Activation::kGeluTanh;
  } else {
    return Status(Code::kInvalidArgument, std::string("attribute '") + name + "' is '" +
                                              text_value + "', not 'silu' or 'gelu_tanh'");
  }
  return Status::okay();
}

OrtStatus* KernelAttributes::read(const char* name, int64_t* value) const {
  return api_.KernelInfoGetAttribute_int64(info_, name, value);
}

OrtStatus* KernelAttributes::read(const char* name, float* value) const {
  return api_.KernelInfoGetAttribute_float(info_, name, value);
}

OrtStatus* KernelAttributes::read(const char* name, std::string* value) const {
  size_t size = 0;  // with the terminator
  OrtStatus* status = api_.KernelInfoGetAttribute_string(info_, name, nullptr, &size);
  if (status != nullptr) return status;
  value->resize(size);
  status = api_.KernelInfoGetAttribute_string(info_, name, value->data(), &size);
  if (status == nullptr) value->resize(size - 1);
  return status;
}

OrtStatus* InferenceAttributes::read(const char* name, int64_t* value) const {
  const OrtOpAttr* attribute = nullptr;
  size_t size = 0;
  OrtStatus* status = api_.ShapeInferContext_GetAttribute(context_, name, &attribute);
  if (status != nullptr) return status;
  return api_.ReadOpAttr(attribute, ORT_OP_ATTR_INT, value, sizeof(*value), &size);
}

OrtStatus* InferenceAttributes::read(const char* name, float* value) const {
  const OrtOpAttr* attribute = nullptr;
  size_t size = 0;
  OrtStatus* status = api_.ShapeInferContext_GetAttribute(context_, name, &attribute);
  if (status != nullptr) return status;
  return api_.ReadOpAttr(attribute, ORT_OP_ATTR_FLOAT, value, sizeof(*value), &size);
}

OrtStatus* InferenceAttributes::read(const char* name, std::string* value) const {
  const OrtOpAttr* attribute = nullptr;
  OrtStatus* status = api_.ShapeInferContext_GetAttribute(context_, name, &attribute);
  if (status != nullptr) return status;
  // With no room it reports the size it needs, as an error.
  size_t size = 0;
  status = api_.ReadOpAttr(attribute, ORT_OP_ATTR_STRING, nullptr, 0, &size);
  if (status != nullptr) {
    if (size == 0) return status;
    api_.ReleaseStatus(status);
  }
  value->resize(size);
  return api_.ReadOpAttr(attribute, ORT_OP_ATTR_STRING, value->data(), value->size(), &size);
}

}  // namespace sapwood::ort
