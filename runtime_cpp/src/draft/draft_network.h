// What a DraftCache runs: a network that gives the law of the next token for rows of text and of
// guesses, be it a whole model or a head that was trained on a target's hidden states.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "base/status.h"
#include "kernels/row_batch.h"
#include "memory/kv_store.h"
#include "tree/draft_tree.h"

namespace sapwood {

// One pass: rows of text, each seeing the ones before, then nodes first_node, first_node + 1, ...
struct DraftPass {
  const RowBatch& batch;
  int text_rows;
  std::span<const float> hidden_states;  // of the rows of text, [text_rows][hidden_state_size()]
  const DraftTree& nodes;
  int first_node;
};

class DraftNetwork {
 public:
  virtual ~DraftNetwork() = default;

  virtual int vocabulary_size() const = 0;          // of the tokens it reads
  virtual int context_length() const { return 0; }  // positions it was made for; 0: any
  virtual int max_rows() const = 0;                 // of one pass
  virtual int max_depth() const { return DraftTree::kCapacity; }  // of nodes it looks beyond

  // Its laws: of so many entries, each belonging to a token, or below 0 to none; empty: entry i is
  // token i. What belongs to which may change with the text; their number does not.
  virtual int law_size() const = 0;
  virtual std::span<const int32_t> token_ids() const { return {}; }
  virtual int entry_of(int32_t token) const { return token; }  // below 0: none

  // The text that is drafted for, from its first token on, and what came to it. No allocation.
  virtual void begin_text(std::span<const int32_t> tokens) { static_cast<void>(tokens); }
  virtual void extend_text(std::span<const int32_t> tokens) { static_cast<void>(tokens); }

  // The first so many tokens of a text have no row: what a row reads of the position before is not
  // there yet.
  virtual int skipped_tokens() const { return 0; }

  // Layers of the target, counted from 1, whose outputs a row of text reads, and how many numbers
  // that are. Empty: it reads tokens alone, and K and V of a guess are those of the text it
  // becomes.
  virtual std::span<const int> hidden_layers() const { return {}; }
  virtual int hidden_state_size() const { return 0; }

  // A cache with so many slots; null: it keeps none and looks at a text's last row alone.
  virtual Result<std::unique_ptr<KvStore>> make_kv(int slots) const = 0;

  // logits [batch.output_rows.size()][law_size()]: of the last row of text, if there are any and
  // they are asked for, then of every node. Must not allocate.
  virtual Status forward(const DraftPass& pass, KvStore* kv, std::span<float> logits) = 0;

  // What a trained head says of the rejection of what follows a node it has looked beyond, or the
  // text (DraftTree::kRoot): Candidates::uncertainty.
  virtual std::optional<float> uncertainty(int node) {
    static_cast<void>(node);
    return std::nullopt;
  }

  // The node `from`, which was looked beyond, is now `to`, a lower one or DraftTree::kRoot: for a
  // network that keeps something of its nodes.
  virtual void move_node(int from, int to) { static_cast<void>(from), static_cast<void>(to); }

  bool reads_hidden_states() const { return !hidden_layers().empty(); }
};

}  // namespace sapwood
