// Sizes that attention and its callers must agree on.
#pragma once

#include <cstddef>

#include "kernels/kv_layout.h"

namespace sapwood {

inline constexpr int kAttentionRows = 8;   // rows that share one walk over the context
inline constexpr int kMaxGroup = 16;       // query heads a kv head may serve
inline constexpr int kAttentionTile = 64;  // positions that int8 attention takes at a time

// What int8 attention needs for one query vector, in floats: its sums and its codes, and a tile's
// integer sums, scores and weights, these once more with zeros around them.
inline constexpr size_t int8_vector_floats(int head_dim) {
  return static_cast<size_t>(head_dim) * 9 / 4 + 2 * ((head_dim + kKeyGroup - 1) / kKeyGroup) +
         kKeyTile + kAttentionTile * 3 / 2 + 2 * kValueQuad / 4 + 4;
}

// What attention of one query vector over `columns` positions needs, whatever the cache's format.
inline constexpr size_t attention_vector_floats(int head_dim, size_t columns) {
  const size_t half = (columns + 15) / 16 * 16 + 16 + 2 * static_cast<size_t>(head_dim);
  const size_t int8 = int8_vector_floats(head_dim);
  return half > int8 ? half : int8;
}

}  // namespace sapwood
