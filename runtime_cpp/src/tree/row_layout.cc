#include "tree/row_layout.h"

#include <algorithm>
#include <cassert>
#include <numeric>

namespace sapwood {

RowLayout::RowLayout(int max_rows)
    : max_rows_(max_rows),
      tokens_(max_rows),
      positions_(max_rows),
      path_begin_(max_rows),
      path_end_(max_rows),
      output_rows_(max_rows) {
  // The worst tree is a chain: paths of 1, 2, ..., n slots.
  const size_t rows = std::min(max_rows, DraftTree::kCapacity + 1);
  path_slots_.reserve(rows * (rows + 1) / 2);
  std::iota(output_rows_.begin(), output_rows_.end(), 0);
}

RowBatch RowLayout::tree_rows(int32_t root_token, const DraftTree& tree,
                              std::span<const int32_t> context_slots,
                              std::span<const int32_t> slots) {
  const size_t rows = static_cast<size_t>(tree.size()) + 1;
  assert(static_cast<int>(rows) <= max_rows_ && slots.size() == rows);
  const int32_t prefix = static_cast<int32_t>(context_slots.size());
  path_slots_.clear();
  tokens_[0] = root_token;
  positions_[0] = prefix;
  path_begin_[0] = 0;
  path_slots_.push_back(slots[0]);
  path_end_[0] = 1;
  for (int v = 0; v < tree.size(); ++v) {
    const int row = v + 1;
    const int parent_row = tree.parent(v) + 1;
    tokens_[row] = tree.token(v);
    positions_[row] = prefix + tree.depth(v);
    if (path_end_[parent_row] == static_cast<int32_t>(path_slots_.size())) {
      path_begin_[row] = path_begin_[parent_row];  // the parent's path ends here: go on from it
    } else {
      path_begin_[row] = static_cast<int32_t>(path_slots_.size());
      for (int i = path_begin_[parent_row]; i < path_end_[parent_row]; ++i) {
        path_slots_.push_back(path_slots_[i]);  // within what was reserved: no reallocation
      }
    }
    path_slots_.push_back(slots[row]);
    path_end_[row] = static_cast<int32_t>(path_slots_.size());
  }
  const auto rows_of = [rows](const std::vector<int32_t>& all) {
    return std::span<const int32_t>(all).first(rows);
  };
  return {rows_of(tokens_),   rows_of(positions_),  slots,
          context_slots,      path_slots_,          rows_of(path_begin_),
          rows_of(path_end_), rows_of(output_rows_)};
}

RowBatch RowLayout::text_rows(std::span<const int32_t> tokens,
                              std::span<const int32_t> context_slots,
                              std::span<const int32_t> slots) {
  const size_t rows = tokens.size();
  assert(static_cast<int>(rows) <= max_rows_ && slots.size() == rows);
  for (size_t r = 0; r < rows; ++r) {
    positions_[r] = static_cast<int32_t>(context_slots.size() + r);
    path_begin_[r] = 0;
    path_end_[r] = static_cast<int32_t>(r + 1);
  }
  const auto rows_of = [rows](const std::vector<int32_t>& all) {
    return std::span<const int32_t>(all).first(rows);
  };
  return {tokens,
          rows_of(positions_),
          slots,
          context_slots,
          slots,
          rows_of(path_begin_),
          rows_of(path_end_),
          {}};
}

}  // namespace sapwood
