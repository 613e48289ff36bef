// Tree attention over a team, as both hosts' operators run it.
#pragma once

#include "base/status.h"
#include "operators/cache_arguments.h"
#include "operators/resources.h"
#include "operators/shapes.h"

namespace sapwood::operators {

// The heads of q[R, heads, D] and k[R, kv_heads, D], if the kernels can hold them.
Status set_heads(const Tensor& q, const Tensor& k, AttentionShape* shape);

// Writes k and v [R, kv_heads, D] to the rows' slots, then out[R, heads * D].
void attend(const AttentionShape& shape, const Tensor& q, const Tensor& k, const Tensor& v,
            const CacheCall& cache, float* out, Resources& resources);

}  // namespace sapwood::operators
