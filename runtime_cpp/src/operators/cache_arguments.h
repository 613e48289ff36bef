// What every attending operator is given on either host: which slots each row sees, and the cache.
#pragma once

#include "base/status.h"
#include "kernels/kernels.h"
#include "kernels/kv_layout.h"
#include "kernels/row_batch.h"
#include "operators/resources.h"
#include "operators/shapes.h"

namespace sapwood::operators {

// slots[R], context_slots[C], path_slots[P], path_ranges[R, 2], all int32, and a layer's float16
// keys[kv_heads, slots / 16, head_dim, 16] and values[kv_heads, slots, head_dim].
struct CacheArguments {
  Tensor slots, context_slots, path_slots, path_ranges, past_keys, past_values;
};

// What a run of `rows` rows reads and writes. Every index has been checked against the cache.
struct CacheCall {
  RowBatch batch;          // positions from the paths' lengths; no tokens but their number
  KvLayerView kv;          // the layout; the host says where the rows are written
  int visible_tokens = 0;  // the most that one row sees
};

// Checks every shape and index, and takes the rows' paths apart.
Status open_cache(const CacheArguments& arguments, int rows, int kv_heads, int head_dim,
                  Resources& resources, CacheCall* out);

// An error unless the kernels can write keys or values there.
Status check_cache_alignment(const void* memory);

// What the kernels ask of the heads: whole groups, no larger than they can hold, in vectors of 16.
Status check_heads(const AttentionShape& shape);

// An error unless every row asked for is one of `rows`.
Status check_output_rows(std::span<const int32_t> output_rows, int64_t rows);

// An error unless every token is in the vocabulary.
Status check_tokens(std::span<const int32_t> tokens, int vocabulary);

}  // namespace sapwood::operators
