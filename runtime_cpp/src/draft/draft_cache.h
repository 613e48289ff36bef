// A model that drafts, with the K and V of the text and of the nodes it has looked beyond.
//
// Slot i holds token i of the text; the nodes lie behind it in the order they were added. When the
// target has spoken, the nodes it agreed with are moved to their places in the text, and the rest
// is forgotten. What the cache holds of the text is kept as long as the text goes on from it.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/status.h"
#include "memory/kv_store.h"
#include "model/model.h"
#include "tree/draft_tree.h"
#include "tree/level_layout.h"

namespace sapwood {

class DraftCache {
 public:
  // max_nodes: of one pass; lowered to what the model takes.
  DraftCache(std::shared_ptr<Model> model, int max_nodes);

  const Model& model() const { return *model_; }
  int max_nodes() const { return layout_.max_nodes(); }

  // The text is now exactly this. Room for `max_tokens` is made if there is less; the longest
  // prefix that is in the cache stays there. No pass is run.
  Status set_text(std::span<const int32_t> tokens, int max_tokens);
  // The text goes on; nodes on its way are kept as part of it. No pass, no allocation.
  void append(std::span<const int32_t> tokens);

  std::span<const int32_t> text() const { return text_; }

  // A tree is to be grown from the text's end: forgets all nodes, and reads the last token again.
  void begin_tree();

  // How deep nodes may be that are added: positions beyond the text that the model was made for.
  // Below 0: the text itself is too long, or empty, and no pass can be run.
  int depth_left() const;
  // Tokens of the text that the next pass will read: at least one for the first of a tree, none for
  // the others.
  int unread() const { return static_cast<int>(text_.size()) - read_; }

  // A node for the next pass, under a node or DraftTree::kRoot; its number, or DraftTree::kNone if
  // the pass or the tree is full or it is too deep.
  int add(int parent, int32_t token);
  // Reads what is unread and looks beyond the nodes added since the last pass. On an error those
  // are forgotten.
  Status pass();

  // Of the latest pass: a node that was added for it, or kRoot if there was unread text.
  std::span<const float> logits(int node) const;
  const DraftTree& nodes() const { return nodes_; }
  int first_of_pass() const { return first_; }  // the first node of the latest pass

 private:
  Status read_text_and_look();

  std::shared_ptr<Model> model_;
  std::unique_ptr<KvStore> kv_;
  LevelLayout layout_;
  std::vector<int32_t> slots_;  // 0, 1, 2, ...
  std::vector<int32_t> text_;
  int read_ = 0;   // tokens of the text in the cache
  int limit_ = 0;  // positions of the text there is room for
  DraftTree nodes_;
  int looked_ = 0;                   // nodes whose pass has been run
  int first_ = 0;                    // of the latest pass
  int root_rows_ = 0;                // of the latest pass's logits, in front of the nodes': 0 or 1
  std::unique_ptr<float[]> logits_;  // [1 + max_nodes][vocabulary]
};

}  // namespace sapwood
