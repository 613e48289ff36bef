// TreeAttention(q[R, heads, D], k[R, kv, D], v[R, kv, D], slots, context_slots, path_slots,
//               path_ranges, past_keys, past_values) {scale, window}
//   -> out[R, heads * D], present_keys, present_values
#include "operators/attend.h"
#include "operators/onnxruntime/cache_inputs.h"
#include "operators/onnxruntime/operator.h"

namespace sapwood::ort {
namespace {

enum Input : size_t { kQ, kK, kV };

constexpr CachePorts kCache{3, 1};
constexpr Port kInputs[] = {{"q", kFloat},
                            {"k", kFloat},
                            {"v", kFloat},
                            {"slots", kIndex},
                            {"context_slots", kIndex},
                            {"path_slots", kIndex},
                            {"path_ranges", kIndex},
                            {"past_keys", kHalf},
                            {"past_values", kHalf}};
constexpr Port kOutputs[] = {{"out", kFloat}, {"present_keys", kHalf}, {"present_values", kHalf}};

Status read_settings(const Attributes& attributes, AttentionShape* shape) {
  SAPWOOD_TRY(attributes.real("scale", &shape->scale));
  return attributes.integer("window", 0, &shape->window);
}

class TreeAttention final : public Kernel {
 public:
  static Result<std::unique_ptr<Kernel>> create(const KernelSetup& setup) {
    auto kernel = std::make_unique<TreeAttention>();
    SAPWOOD_TRY(read_settings(setup.attributes(), &kernel->settings_));
    return std::unique_ptr<Kernel>(std::move(kernel));
  }

  Status compute(KernelCall& call, Resources& resources) override {
    Tensor q, k, v;
    CacheCall cache;
    float* out = nullptr;
    SAPWOOD_TRY(call.read(kQ, {kAny, kAny, kAny}, &q));
    SAPWOOD_TRY(call.read(kK, {q.shape[0], kAny, q.shape[2]}, &k));
    SAPWOOD_TRY(call.read(kV, {q.shape[0], k.shape[1], q.shape[2]}, &v));
    AttentionShape shape = settings_;
    SAPWOOD_TRY(operators::set_heads(q, k, &shape));
    const int rows = static_cast<int>(q.shape[0]);
    SAPWOOD_TRY(open_cache(call, kCache, rows, shape.kv_heads, shape.head_dim, resources, &cache));
    const int width = shape.heads * shape.head_dim;
    SAPWOOD_TRY(call.write(0, {rows, width}, &out));
    operators::attend(shape, q, k, v, cache, out, resources);
    return Status::okay();
  }

 private:
  AttentionShape settings_;  // scale and window; the rest comes with the tensors
};

Status infer(const Attributes& attributes, ShapeInference& shapes) {
  AttentionShape shape;
  SAPWOOD_TRY(read_settings(attributes, &shape));
  SAPWOOD_TRY(shapes.expect(kQ, {kAny, kAny, kAny}));
  const Dim rows = shapes.dim(kQ, 0);
  const int64_t head_dim = shapes.dim(kQ, 2).size;
  SAPWOOD_TRY(shapes.expect(kK, {rows.size, kAny, head_dim}));
  const int64_t kv_heads = shapes.dim(kK, 1).size;
  SAPWOOD_TRY(shapes.expect(kV, {rows.size, kv_heads, head_dim}));
  SAPWOOD_TRY(
      infer_cache(shapes, kCache, rows, static_cast<int>(kv_heads), static_cast<int>(head_dim)));
  const int64_t heads = shapes.dim(kQ, 1).size;
  const Dim width = heads == kAny || head_dim == kAny ? Dim() : Dim(heads * head_dim);
  return shapes.set_output(0, {rows, width});
}

}  // namespace

const OperatorDefinition kTreeAttention = {"TreeAttention",       kInputs, kOutputs, false,
                                           TreeAttention::create, infer};

}  // namespace sapwood::ort
