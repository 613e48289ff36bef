// Sizes that attention and its callers must agree on.
#pragma once

namespace sapwood {

inline constexpr int kAttentionRows = 8;  // rows that share one walk over the context
inline constexpr int kMaxGroup = 16;      // query heads a kv head may serve

}  // namespace sapwood
