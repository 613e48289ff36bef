// Numbers that stages hand to each other - logits, hidden states - in memory that a device can
// import (memory/unified_pool.h).
#pragma once

#include <cstddef>
#include <memory>

namespace sapwood {

// `count` zeros in a pool of their own, page-aligned; they live as long as the pointer or a copy of
// it. Null for none. Throws std::bad_alloc where `new` would.
std::shared_ptr<float[]> pooled_floats(size_t count);

}  // namespace sapwood
