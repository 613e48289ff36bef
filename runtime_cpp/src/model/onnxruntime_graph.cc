#include "model/onnxruntime_graph.h"

#include <map>
#include <memory>
#include <vector>

#include "kernels/kv_layout.h"
#include "operators/onnxruntime/ort_status.h"
#include "operators/onnxruntime/port.h"
#include "operators/shapes.h"

namespace sapwood {
namespace {

using operators::kAny;

struct Description {
  ONNXTensorElementDataType type = ONNX_TENSOR_ELEMENT_DATA_TYPE_UNDEFINED;
  std::vector<int64_t> shape;
};
using Descriptions = std::map<std::string, Description>;

// One direction of the graph: how ONNX Runtime counts, names and describes its values.
struct Direction {
  const char* what;  // "input" or "output"
  OrtStatus* (*count)(const OrtSession*, size_t*);
  OrtStatus* (*name)(const OrtSession*, size_t, OrtAllocator*, char**);
  OrtStatus* (*type)(const OrtSession*, size_t, OrtTypeInfo**);
};

Status describe(const OrtApi& api, const OrtTypeInfo* info, Description* description) {
  const OrtTensorTypeAndShapeInfo* tensor = nullptr;  // null if it is no tensor
  SAPWOOD_TRY_ORT(api, api.CastTypeInfoToTensorInfo(info, &tensor));
  if (tensor == nullptr) return Status::okay();
  size_t rank = 0;
  SAPWOOD_TRY_ORT(api, api.GetTensorElementType(tensor, &description->type));
  SAPWOOD_TRY_ORT(api, api.GetDimensionsCount(tensor, &rank));
  description->shape.resize(rank);
  return ort::take_status(api, api.GetDimensions(tensor, description->shape.data(), rank));
}

Status read_graph(const OrtApi& api, const OrtSession* session, const Direction& direction,
                  Descriptions* found) {
  OrtAllocator* allocator = nullptr;  // the default one, which nobody owns
  SAPWOOD_TRY_ORT(api, api.GetAllocatorWithDefaultOptions(&allocator));
  size_t count = 0;
  SAPWOOD_TRY_ORT(api, direction.count(session, &count));
  for (size_t index = 0; index < count; ++index) {
    char* name = nullptr;
    SAPWOOD_TRY_ORT(api, direction.name(session, index, allocator, &name));
    Description& description = (*found)[name];
    SAPWOOD_TRY_ORT(api, api.AllocatorFree(allocator, name));
    OrtTypeInfo* info = nullptr;
    SAPWOOD_TRY_ORT(api, direction.type(session, index, &info));
    const std::unique_ptr<OrtTypeInfo, decltype(api.ReleaseTypeInfo)> owner(info,
                                                                            api.ReleaseTypeInfo);
    SAPWOOD_TRY(describe(api, info, &description));
  }
  return Status::okay();
}

Status compare(const char* what, const Descriptions& found, const Descriptions& expected) {
  for (const auto& [name, description] : expected) {
    const std::string value = std::string(what) + " '" + name + "'";
    const auto entry = found.find(name);
    if (entry == found.end()) return Status(Code::kCorrupt, value + " is missing");
    if (entry->second.type != description.type) {
      return Status(Code::kCorrupt, value + " has the wrong element type");
    }
    if (!ort::shape_fits(entry->second.shape, description.shape)) {
      return Status(Code::kCorrupt, value + " has shape " +
                                        ort::describe_shape(entry->second.shape) + ", not " +
                                        ort::describe_shape(description.shape));
    }
  }
  for (const auto& [name, description] : found) {
    if (!expected.contains(name)) {
      return Status(Code::kCorrupt, std::string(what) + " '" + name + "' is not known");
    }
  }
  return Status::okay();
}

void add_caches(const ModelSpec& spec, const char* keys, const char* values, Descriptions* ports) {
  for (int layer = 0; layer < spec.layers; ++layer) {
    (*ports)[cache_name(keys, layer)] = {ort::kHalf,
                                         {spec.kv_heads, kAny, spec.head_dim, kKeyTile}};
    (*ports)[cache_name(values, layer)] = {ort::kHalf, {spec.kv_heads, kAny, spec.head_dim}};
  }
}

}  // namespace

std::string cache_name(const char* kind, int layer) {
  return std::string(kind) + "." + std::to_string(layer);
}

Status check_graph(const OrtApi& api, const OrtSession* session, const ModelSpec& spec,
                   const std::string& where) {
  Descriptions inputs;
  for (const char* name : kPassInputs) inputs[name] = {ort::kIndex, {kAny}};
  inputs["path_ranges"].shape = {kAny, 2};
  add_caches(spec, "past_keys", "past_values", &inputs);
  Descriptions outputs = {{kLogits, {ort::kFloat, {kAny, spec.vocabulary_size}}}};
  add_caches(spec, "present_keys", "present_values", &outputs);

  const Direction in{"input", api.SessionGetInputCount, api.SessionGetInputName,
                     api.SessionGetInputTypeInfo};
  const Direction out{"output", api.SessionGetOutputCount, api.SessionGetOutputName,
                      api.SessionGetOutputTypeInfo};
  for (const auto& [direction, expected] : {std::pair{&in, &inputs}, std::pair{&out, &outputs}}) {
    Descriptions found;
    Status status = read_graph(api, session, *direction, &found);
    if (status.ok()) status = compare(direction->what, found, *expected);
    if (!status.ok()) {
      return Status(status.code(), where + ": " + status.message() + "; export the bundle again");
    }
  }
  return Status::okay();
}

}  // namespace sapwood
