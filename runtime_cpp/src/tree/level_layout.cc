#include "tree/level_layout.h"

#include <array>
#include <cassert>

namespace sapwood {

LevelLayout::LevelLayout(int max_rows, int max_nodes) : max_rows_(max_rows), max_nodes_(max_nodes) {
  const size_t rows = static_cast<size_t>(max_rows);
  for (std::vector<int32_t>* each :
       {&tokens_, &positions_, &row_slots_, &path_begin_, &path_end_, &output_rows_}) {
    each->reserve(rows);
  }
  // The text's path once, and every node's: the text, its ancestors and itself.
  path_slots_.reserve(rows + static_cast<size_t>(max_nodes) * (rows + DraftTree::kCapacity));
}

RowBatch LevelLayout::rows(std::span<const int32_t> unread, bool unread_logits,
                           const DraftTree& tree, int first, std::span<const int32_t> context_slots,
                           std::span<const int32_t> slots) {
  const int text = static_cast<int>(unread.size());
  const int context = static_cast<int>(context_slots.size());
  assert(text + tree.size() - first <= max_rows_ && tree.size() - first <= max_nodes_);
  assert(slots.size() == unread.size() + static_cast<size_t>(tree.size()));
  tokens_.assign(unread.begin(), unread.end());
  row_slots_.assign(slots.begin(), slots.begin() + text);
  path_slots_.assign(slots.begin(), slots.begin() + text);
  positions_.clear();
  path_begin_.assign(unread.size(), 0);
  path_end_.clear();
  output_rows_.clear();
  for (int i = 0; i < text; ++i) {
    positions_.push_back(context + i);
    path_end_.push_back(i + 1);
  }
  if (text > 0 && unread_logits) output_rows_.push_back(text - 1);
  std::array<int, DraftTree::kCapacity> path;
  for (int node = first; node < tree.size(); ++node) {
    const int depth = tree.path(node, path);
    path_begin_.push_back(static_cast<int32_t>(path_slots_.size()));
    path_slots_.insert(path_slots_.end(), slots.begin(), slots.begin() + text);
    for (int i = 0; i < depth; ++i) path_slots_.push_back(slots[text + path[i]]);
    path_end_.push_back(static_cast<int32_t>(path_slots_.size()));
    output_rows_.push_back(static_cast<int32_t>(tokens_.size()));
    tokens_.push_back(tree.token(node));
    row_slots_.push_back(slots[text + node]);
    positions_.push_back(context + text + depth - 1);
  }
  return {tokens_,     positions_,  row_slots_, context_slots,
          path_slots_, path_begin_, path_end_,  output_rows_};
}

}  // namespace sapwood
