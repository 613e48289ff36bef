// How good a trained draft is, position by position of a text that its target wrote, and what its
// passes cost: the numbers of `sapwood bench draft`.
//
// Everything goes through what the engine drafts with (draft/draft_cache.h), so a fault there shows
// here too. At depth d the tokens before are taken as right: the draft reads the text itself, with
// the target's hidden states up to the position and its own beyond.
#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "base/status.h"
#include "draft/draft_cache.h"
#include "draft/trained_draft.h"
#include "memory/kv_store.h"
#include "model/model.h"
#include "tree/row_layout.h"

namespace sapwood {

// The draft's law q of one token of a text, against the target's law p there.
struct DraftComparison {
  int position;       // of the token in the text
  int depth;          // 1: right after what the target has verified
  bool same_top;      // the likeliest token of both is the same: accepted decoding greedily
  bool covered;       // the target's likeliest token is among those the draft can guess
  float overlap;      // sum of min(p, q), temperature 1: the probability that a draw is accepted
  float entropy;      // of q, in nats
  float uncertainty;  // predicted 1 - overlap; below 0: the draft has no uncertainty network
};

class DraftQuality {
 public:
  // depths: at least 1. kUnsupported where the target's host shows no hidden states.
  static Result<std::unique_ptr<DraftQuality>> create(std::shared_ptr<Model> target,
                                                      const TrainedDraft& draft, int depths,
                                                      int context_length);

  // Of every token of the text from `first` on, at every depth that reaches it. first: at least 1;
  // a text longer than the context is kInvalidArgument.
  Result<std::vector<DraftComparison>> compare(std::span<const int32_t> text, int first);

  // Milliseconds, once, over `context` tokens: of one row of the target, of a step's first draft
  // pass over `unread` rows of text, and of one over so many nodes. Each comes after a row of the
  // target, as in a step, so that weights lie where they then lie.
  struct Cost {
    double target_row;
    double text_pass;
    double node_pass;
  };
  Result<Cost> cost(int context, int unread, int nodes);

 private:
  DraftQuality(std::shared_ptr<Model> target, std::unique_ptr<DraftNetwork> network, int depths,
               int context_length, std::unique_ptr<KvStore> kv);

  Status read_target(std::span<const int32_t> text, int first);
  Status run_target(int done, int rows, std::span<const int32_t> text, std::span<float> logits);
  DraftComparison comparison(int position, int depth, int node);

  const std::shared_ptr<Model> target_;
  const int depths_;
  const int context_length_;
  const std::unique_ptr<KvStore> kv_;
  DraftCache cache_;
  RowLayout layout_;
  std::vector<int32_t> slots_;
  int first_row_ = 0;          // of the two below, the position of the first row
  std::vector<float> log_p_;   // [rows][vocabulary]
  std::vector<float> states_;  // [rows][hidden_state_size]
};

}  // namespace sapwood
