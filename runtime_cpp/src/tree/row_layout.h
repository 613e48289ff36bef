// Lays a draft tree out as the rows of one pass: row 0 is the root (the last token of the text,
// whose K and V are not in the cache yet), row 1 + v is node v.
//
// A node's position is prefix + depth - 1 where the prefix includes the root: its depth counts,
// never its number. Its path is the root's slot, its ancestors' slots and its own. Buffers are made
// once.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/row_batch.h"
#include "tree/draft_tree.h"

namespace sapwood {

class RowLayout {
 public:
  explicit RowLayout(int max_rows);

  int max_rows() const { return max_rows_; }

  // context_slots: the committed tokens before the root, in position order; slots [1 +
  // tree.size()]: the root's, then the nodes'. The batch points into this object, `context_slots`
  // and `slots`, and asks for every row's logits. tree.size() < max_rows.
  RowBatch tree_rows(int32_t root_token, const DraftTree& tree,
                     std::span<const int32_t> context_slots, std::span<const int32_t> slots);

  // A stretch of known text: tokens.size() rows that each see the rows before. No logits.
  RowBatch text_rows(std::span<const int32_t> tokens, std::span<const int32_t> context_slots,
                     std::span<const int32_t> slots);

 private:
  const int max_rows_;
  std::vector<int32_t> tokens_;
  std::vector<int32_t> positions_;
  std::vector<int32_t> path_slots_;
  std::vector<int32_t> path_begin_;
  std::vector<int32_t> path_end_;
  std::vector<int32_t> output_rows_;  // 0, 1, 2, ...
};

}  // namespace sapwood
