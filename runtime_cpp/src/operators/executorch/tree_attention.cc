// tree_attention_in_place(q[R, heads, D], k[R, kv, D], v[R, kv, D], slots, context_slots,
//   path_slots, path_ranges, keys, values, scale, window) -> out[R, heads * D]; k and v are written
//   into `keys` and `values` first
#include "operators/attend.h"
#include "operators/executorch/operator.h"

namespace sapwood::executorch {
namespace {

enum : size_t { kQ, kK, kV, kCache, kScale = 9, kWindow, kOut };
constexpr const char* kNames[] = {"q",          "k",           "v",    "slots",  "context_slots",
                                  "path_slots", "path_ranges", "keys", "values", "scale",
                                  "window",     "out"};

Status compute(Arguments& call, operators::Resources& resources) {
  Tensor q, k, v;
  AttentionShape shape;
  operators::CacheCall cache;
  float* out = nullptr;
  SAPWOOD_TRY(call.real(kScale, &shape.scale));
  SAPWOOD_TRY(call.integer(kWindow, 0, &shape.window));
  SAPWOOD_TRY(call.tensor(kQ, ScalarType::Float, {kAny, kAny, kAny}, &q));
  SAPWOOD_TRY(call.tensor(kK, ScalarType::Float, {q.shape[0], kAny, q.shape[2]}, &k));
  SAPWOOD_TRY(call.tensor(kV, ScalarType::Float, {q.shape[0], k.shape[1], q.shape[2]}, &v));
  SAPWOOD_TRY(operators::set_heads(q, k, &shape));
  const int rows = static_cast<int>(q.shape[0]);
  SAPWOOD_TRY(call.cache(kCache, rows, shape.kv_heads, shape.head_dim, resources, &cache));
  SAPWOOD_TRY(call.output(kOut, {rows, static_cast<int64_t>(shape.heads) * shape.head_dim}, &out));
  operators::attend(shape, q, k, v, cache, out, resources);
  return Status::okay();
}

}  // namespace

const OperatorDefinition kTreeAttention = {"sapwood::tree_attention_in_place.out", kNames, compute};

}  // namespace sapwood::executorch
