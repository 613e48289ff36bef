// Lays out a pass of a model that drafts: text it has not read yet, and the nodes of a tree that it
// is to look beyond, whose ancestors it has looked beyond before or looks beyond in the same pass.
//
// Rows are the unread text, each token seeing the ones before, then nodes first, first + 1, ... of
// the tree. (RowLayout lays out a whole tree under its root, which is all a target ever sees.)
#pragma once

#include <cstdint>
#include <span>
#include <vector>

#include "kernels/row_batch.h"
#include "tree/draft_tree.h"

namespace sapwood {

class LevelLayout {
 public:
  // All buffers are made here. max_rows: of a pass; max_nodes: of these, nodes.
  LevelLayout(int max_rows, int max_nodes);

  int max_rows() const { return max_rows_; }
  int max_nodes() const { return max_nodes_; }

  // context_slots: the text that was read, in position order. slots: one for each token of
  // `unread`, then one for each node of the tree, node 0 first, whether it is a row or not.
  // Logits are asked of the last token of `unread`, if `unread_logits`, and of every node. The
  // batch points into this object and the spans given.
  RowBatch rows(std::span<const int32_t> unread, bool unread_logits, const DraftTree& tree,
                int first, std::span<const int32_t> context_slots, std::span<const int32_t> slots);

 private:
  const int max_rows_;
  const int max_nodes_;
  std::vector<int32_t> tokens_;
  std::vector<int32_t> positions_;
  std::vector<int32_t> row_slots_;
  std::vector<int32_t> path_slots_;
  std::vector<int32_t> path_begin_;
  std::vector<int32_t> path_end_;
  std::vector<int32_t> output_rows_;
};

}  // namespace sapwood
