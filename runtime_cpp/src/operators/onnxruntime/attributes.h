// Reading a node's attributes, the same way when shapes are inferred and when its kernel is made.
#pragma once

#include <onnxruntime_c_api.h>

#include <cstdint>
#include <string>

#include "base/status.h"
#include "kernels/kernels.h"
#include "kernels/linear.h"

namespace sapwood::ort {

class Attributes {
 public:
  virtual ~Attributes() = default;

  // Each reads one attribute that must be there; the message names it.
  Status integer(const char* name, int minimum, int* value) const;
  Status real(const char* name, float* value) const;
  Status text(const char* name, std::string* value) const;

  Status linear_format(const char* name, LinearFormat* value) const;  // "int4_g32", ...
  Status activation(const char* name, Activation* value) const;       // "silu" or "gelu_tanh"

 protected:
  virtual OrtStatus* read(const char* name, int64_t* value) const = 0;
  virtual OrtStatus* read(const char* name, float* value) const = 0;
  virtual OrtStatus* read(const char* name, std::string* value) const = 0;

  explicit Attributes(const OrtApi& api) : api_(api) {}
  const OrtApi& api_;

 private:
  Status found(OrtStatus* status, const char* name, const char* type) const;
};

// Of the node whose kernel is being made.
class KernelAttributes final : public Attributes {
 public:
  KernelAttributes(const OrtApi& api, const OrtKernelInfo* info) : Attributes(api), info_(info) {}

 protected:
  OrtStatus* read(const char* name, int64_t* value) const override;
  OrtStatus* read(const char* name, float* value) const override;
  OrtStatus* read(const char* name, std::string* value) const override;

 private:
  const OrtKernelInfo* info_;
};

// Of the node whose output shapes are being inferred.
class InferenceAttributes final : public Attributes {
 public:
  InferenceAttributes(const OrtApi& api, const OrtShapeInferContext* context)
      : Attributes(api), context_(context) {}

 protected:
  OrtStatus* read(const char* name, int64_t* value) const override;
  OrtStatus* read(const char* name, float* value) const override;
  OrtStatus* read(const char* name, std::string* value) const override;

 private:
  const OrtShapeInferContext* context_;
};

}  // namespace sapwood::ort
