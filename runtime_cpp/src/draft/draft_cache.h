// A network that drafts, with the K and V of the text and of the nodes it has looked beyond.
//
// Every token of the text has a slot, which holds its row; the nodes lie behind in the order they
// were added. When the target has spoken, the nodes it agreed with are moved to their places in the
// text, and the rest is forgotten; a network that reads the target's hidden states reads what came
// with the true ones instead. What was read of a text stays for texts that begin like it, as the
// target's own prefixes do (memory/prefix_cache.h): a row depends on nothing but the tokens before
// it, so who goes on from a kept prefix drafts as if it had just read it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/status.h"
#include "draft/draft_network.h"
#include "memory/prefix_cache.h"
#include "model/model.h"
#include "tree/draft_tree.h"
#include "tree/level_layout.h"

namespace sapwood {

// Where the K and V of a network lie; for the drafters of sessions that share a cache, or come one
// after another.
struct DraftMemory {
  std::shared_ptr<PrefixCache> cache;  // made by the first text
  int kept_tokens = 0;                 // of other texts, beyond the room that one text takes
  bool share_prefixes = true;          // false: what was read of a text goes with it
};

class DraftCache {
 public:
  // max_nodes: of one pass; lowered to what the network takes. memory: null: one of its own.
  DraftCache(std::unique_ptr<DraftNetwork> network, int max_nodes,
             std::shared_ptr<DraftMemory> memory = nullptr);
  ~DraftCache();
  DraftCache(std::shared_ptr<Model> model, int max_nodes);

  const DraftNetwork& network() const { return *network_; }
  int max_nodes() const { return layout_.max_nodes(); }

  // The text is now exactly this. Room for `max_tokens` is made if there is less; the longest
  // prefix that is in the cache stays there. No pass is run.
  Status set_text(std::span<const int32_t> tokens, int max_tokens);
  // The text goes on; nodes on its way are kept as part of it. No pass, no allocation.
  void append(std::span<const int32_t> tokens);

  // The same, where the tokens lead to `node`, which was looked beyond: nodes below it stay, and
  // may be looked beyond further, until begin_tree(). Their new numbers go to `renumbered`
  // [nodes().size()], DraftTree::kNone for all others. Where the target's hidden states are read,
  // the tokens are read again with them, by the next pass, and what was kept goes on from the
  // network's own.
  void append_keeping(std::span<const int32_t> tokens, int node, std::span<int16_t> renumbered);
  // A network without a cache has nothing to keep.
  bool can_keep() const { return cache_ != nullptr && reserved_; }

  std::span<const int32_t> text() const { return text_; }

  // Positions of the text, from the first on, whose hidden states are not needed again; the text's
  // length where the network reads none.
  int states_taken() const;
  // The target's, of positions first, first + 1, ... [..][hidden_state_size]; those that are not
  // needed are passed over. A long stretch, a prompt's, is read at once. No allocation.
  Status take_states(int first, std::span<const float> states);

  // A tree is to be grown from the text's end: forgets all nodes, and reads the last token again.
  void begin_tree();

  // How deep nodes may be that are added: positions beyond the text that the network was made for.
  // Below 0: the text itself is too long or too short, or hidden states of it are missing, and no
  // pass can be run.
  int depth_left() const;
  // Rows of the text that the next pass will read: at least one for the first of a tree, none for
  // the others.
  int unread() const { return rows() - read_; }

  // Whether the next pass can look beyond children of `parent`, a node or DraftTree::kRoot: a
  // network that reads its own states must have looked beyond the parent in an earlier one.
  bool may_add(int parent) const;
  // A node for the next pass; its number, or DraftTree::kNone if it may not be added, the pass or
  // the tree is full or it is too deep.
  int add(int parent, int32_t token);
  // Reads what is unread and looks beyond the nodes added since the last pass. On an error those
  // are forgotten.
  Status pass();

  // Of the latest pass: a node that was added for it, or kRoot if there was unread text.
  std::span<const float> logits(int node) const;
  std::optional<float> uncertainty(int node) { return network_->uncertainty(node); }
  const DraftTree& nodes() const { return nodes_; }
  int first_of_pass() const { return first_; }  // the first node of the latest pass

 private:
  // The text's rows: its tokens without those that have none.
  int rows() const {
    return std::max(static_cast<int>(text_.size()) - network_->skipped_tokens(), 0);
  }
  std::span<const int32_t> row_tokens() const {
    return std::span<const int32_t>(text_).last(static_cast<size_t>(rows()));
  }
  std::span<const int32_t> row_slots() const {  // of the text's rows, then of the nodes
    const std::span<const int32_t> all = slots_.has_value() ? slots_->slots() : numbers_;
    return all.subspan(static_cast<size_t>(network_->skipped_tokens()));
  }
  Status make_room(int limit);
  bool reserve();
  void share();
  void share_much();
  std::span<const float> states_of(int row, int count) const;
  Status read_rows(int count);
  Status read_text_and_look();

  const std::unique_ptr<DraftNetwork> network_;
  const std::shared_ptr<DraftMemory> memory_;
  std::shared_ptr<PrefixCache> cache_;  // null: the network keeps none
  std::optional<PrefixSlots> slots_;    // where there is a cache: of text and nodes
  std::vector<int32_t> numbers_;        // where there is none: 0, 1, 2, ...
  bool reserved_ = false;               // every row and node has its slot
  LevelLayout layout_;
  std::vector<int32_t> text_;
  int read_ = 0;   // rows of the text in the cache
  int limit_ = 0;  // positions of the text there is room for
  DraftTree nodes_;
  DraftTree kept_;                   // scratch of append_keeping()
  bool root_kept_ = false;           // the root's state is that of a node it was
  int looked_ = 0;                   // nodes whose pass has been run
  int first_ = 0;                    // of the latest pass
  int root_rows_ = 0;                // of the latest pass's logits, in front of the nodes': 0 or 1
  std::shared_ptr<float[]> logits_;  // [1 + max_nodes][law_size]

  // Hidden states of rows that are still to be read, from first_state_ on.
  std::vector<float> states_;  // [max_rows][hidden_state_size]
  int first_state_ = 0;
  int state_rows_ = 0;
};

}  // namespace sapwood
