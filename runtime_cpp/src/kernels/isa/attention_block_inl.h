// What the rows of one attention block share, in either format of the cache. Included once per
// instruction set.
#pragma once

#include <algorithm>
#include <limits>

#include "kernels/attention_limits.h"
#include "kernels/kernels.h"

namespace sapwood::SAPWOOD_ISA {

// Rows begin .. begin + rows of a batch, at most kAttentionRows.
struct AttentionBlock {
  const RowBatch& batch;
  int begin;
  int rows;
  int window;
  int context;      // positions 0 .. context are the committed prefix
  int common;       // positions context .. context + common: what their paths begin with
  int longest = 0;  // the longest path
  int first;        // the lowest position any row sees

  AttentionBlock(const AttentionShape& shape, const RowBatch& batch, int begin, int end)
      : batch(batch),
        begin(begin),
        rows(std::min(kAttentionRows, end - begin)),
        window(shape.window),
        context(batch.context()),
        common(length(0)),
        first(std::numeric_limits<int>::max()) {
    for (int row = 0; row < rows; ++row) {
      const bool same = batch.path_begin[begin + row] == batch.path_begin[begin];
      common = same ? std::min(common, length(row)) : 0;
      longest = std::max(longest, length(row));
      first = std::min(first, first_seen(row));
    }
  }

  int length(int row) const { return batch.path_end[begin + row] - batch.path_begin[begin + row]; }
  // The row sees positions first_seen .. end.
  int end(int row) const { return context + length(row); }
  int first_seen(int row) const { return window > 0 ? std::max(0, end(row) - window) : 0; }

  const int32_t* context_slots() const { return batch.context_slots.data(); }
  // Slots of a row's path, from position `context` on; the first `common` are those of all rows.
  const int32_t* path(int row) const {
    return batch.path_slots.data() + batch.path_begin[begin + row];
  }
};

}  // namespace sapwood::SAPWOOD_ISA
