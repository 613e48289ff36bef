// The inputs and outputs that every attending operator has: which slots each row sees, and the
// cache.
#pragma once

#include <cstddef>

#include "base/status.h"
#include "operators/cache_arguments.h"
#include "operators/onnxruntime/kernel_call.h"
#include "operators/onnxruntime/shape_inference.h"

namespace sapwood::ort {

// Six inputs in a row, from `first`: slots[R], context_slots[C], path_slots[P], path_ranges[R, 2],
// past_keys[kv_heads, slots / 16, head_dim, 16], past_values[kv_heads, slots, head_dim].
// Two outputs in a row, from `first_output`: present_keys, present_values, shaped like the past.
struct CachePorts {
  size_t first;
  size_t first_output;

  size_t slots() const { return first; }
  size_t context_slots() const { return first + 1; }
  size_t path_slots() const { return first + 2; }
  size_t path_ranges() const { return first + 3; }
  size_t past_keys() const { return first + 4; }
  size_t past_values() const { return first + 5; }
};

using operators::CacheCall;

// The present: the past has been copied there unless it is the same memory.
Status open_cache(KernelCall& call, const CachePorts& ports, int rows, int kv_heads, int head_dim,
                  Resources& resources, CacheCall* out);

using operators::check_heads;

// Output shapes of the cache; fails on a misfit among its inputs.
Status infer_cache(ShapeInference& shapes, const CachePorts& ports, const Dim& rows, int kv_heads,
                   int head_dim);

}  // namespace sapwood::ort
