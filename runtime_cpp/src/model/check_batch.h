// The one check of a batch that every host makes before it touches anything.
#pragma once

#include "base/status.h"
#include "kernels/row_batch.h"
#include "memory/kv_store.h"
#include "model/spec.h"

namespace sapwood {

// An error if the batch contradicts itself (row_batch.h), does not fit the model or the store, or
// asks for more than max_rows rows. O(rows + context + path).
Status check_batch(const RowBatch& batch, const ModelSpec& spec, const KvStore& kv, int max_rows,
                   size_t logits_size);

}  // namespace sapwood
