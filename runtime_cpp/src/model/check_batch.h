// The one check of a batch that every host makes before it touches anything.
#pragma once

#include "base/status.h"
#include "kernels/row_batch.h"
#include "memory/kv_store.h"
#include "model/model.h"
#include "model/spec.h"

namespace sapwood {

// An error if the batch contradicts itself (row_batch.h), does not fit the model or the store, or
// asks for more than max_rows rows. O(rows + context + path).
Status check_batch(const RowBatch& batch, const ModelSpec& spec, const KvStore& kv, int max_rows,
                   size_t logits_size);

// An error that says what to do if the model's host does not take caches of this format.
Status check_format(const Model& model, KvFormat format);

}  // namespace sapwood
