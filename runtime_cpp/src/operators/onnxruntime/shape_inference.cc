#include "operators/onnxruntime/shape_inference.h"

#include <atomic>
#include <memory>

#include "operators/onnxruntime/ort_status.h"

namespace sapwood::ort {
namespace {

// ONNX Runtime takes a size without a symbol at its word, and would believe in minus one rows. What
// nobody knows gets a symbol that nothing else has.
std::string fresh_symbol() {
  static std::atomic<uint64_t> count{0};
  return "unknown_" + std::to_string(count.fetch_add(1, std::memory_order_relaxed));
}

}  // namespace

Status ShapeInference::open(const OrtApi& api, OrtShapeInferContext* context,
                            std::span<const Port> inputs, std::span<const Port> outputs,
                            ShapeInference* inference) {
  inference->api_ = &api;
  inference->context_ = context;
  inference->inputs_ = inputs;
  inference->outputs_ = outputs;
  size_t count = 0;
  SAPWOOD_TRY_ORT(api, api.ShapeInferContext_GetInputCount(context, &count));
  inference->shapes_.resize(count);
  for (size_t index = 0; index < count; ++index) {
    OrtTensorTypeAndShapeInfo* info = nullptr;  // the context's own
    if (OrtStatus* status = api.ShapeInferContext_GetInputTypeShape(context, index, &info)) {
      api.ReleaseStatus(status);  // left out, or without a type yet
      continue;
    }
    if (info == nullptr || !api.TensorTypeAndShape_HasShape(info)) continue;
    size_t rank = 0;
    SAPWOOD_TRY_ORT(api, api.GetDimensionsCount(info, &rank));
    std::vector<int64_t> sizes(rank);
    std::vector<const char*> symbols(rank);
    SAPWOOD_TRY_ORT(api, api.GetDimensions(info, sizes.data(), rank));
    SAPWOOD_TRY_ORT(api, api.GetSymbolicDimensions(info, symbols.data(), rank));
    Shape& shape = inference->shapes_[index];
    shape.known = true;
    shape.dims.resize(rank);
    for (size_t axis = 0; axis < rank; ++axis) {
      shape.dims[axis].size = sizes[axis] < 0 ? kAny : sizes[axis];
      if (symbols[axis] != nullptr) shape.dims[axis].symbol = symbols[axis];
    }
  }
  return Status::okay();
}

Status ShapeInference::expect(size_t input, std::initializer_list<int64_t> shape) const {
  if (!has_shape(input)) return Status::okay();
  std::vector<int64_t> given;
  for (const Dim& dim : shapes_[input].dims) given.push_back(dim.size);
  const std::span<const int64_t> expected(shape.begin(), shape.size());
  if (shape_fits(given, expected)) return Status::okay();
  return Status(Code::kInvalidArgument, describe_misfit(inputs_[input].name, given, expected));
}

Dim ShapeInference::dim(size_t input, size_t axis) const {
  if (!has_shape(input) || axis >= rank(input)) return Dim();
  return shapes_[input].dims[axis];
}

Status ShapeInference::set_output(size_t output, const std::vector<Dim>& shape) {
  OrtTensorTypeAndShapeInfo* raw = nullptr;
  SAPWOOD_TRY_ORT(*api_, api_->CreateTensorTypeAndShapeInfo(&raw));
  const std::unique_ptr<OrtTensorTypeAndShapeInfo, decltype(api_->ReleaseTensorTypeAndShapeInfo)>
      info(raw, api_->ReleaseTensorTypeAndShapeInfo);
  std::vector<int64_t> sizes;
  std::vector<std::string> names;
  for (const Dim& dim : shape) {
    sizes.push_back(dim.size);
    names.push_back(dim.size == kAny && dim.symbol.empty() ? fresh_symbol() : dim.symbol);
  }
  std::vector<const char*> symbols;
  for (const std::string& name : names) symbols.push_back(name.c_str());
  SAPWOOD_TRY_ORT(*api_, api_->SetTensorElementType(raw, outputs_[output].type));
  SAPWOOD_TRY_ORT(*api_, api_->SetDimensions(raw, sizes.data(), sizes.size()));
  SAPWOOD_TRY_ORT(*api_, api_->SetSymbolicDimensions(raw, symbols.data(), symbols.size()));
  return take_status(*api_, api_->ShapeInferContext_SetOutputTypeShape(context_, output, raw));
}

Status ShapeInference::copy_shape(size_t input, size_t output) {
  if (!has_shape(input)) return Status::okay();
  return set_output(output, shapes_[input].dims);
}

}  // namespace sapwood::ort
