// A trained head that drafts, with the states of the guesses it has looked beyond: what their
// children read in place of the target's.
#pragma once

#include <memory>
#include <vector>

#include "draft/draft_network.h"
#include "model/draft_head.h"

namespace sapwood {

class HeadNetwork final : public DraftNetwork {
 public:
  explicit HeadNetwork(std::shared_ptr<DraftHead> head);

  int vocabulary_size() const override { return head_->manifest().target.vocabulary_size; }
  int context_length() const override { return head_->context_length(); }
  int max_rows() const override { return head_->max_rows(); }
  int law_size() const override { return vocabulary_.size(); }
  std::span<const int32_t> token_ids() const override { return vocabulary_.tokens(); }
  int entry_of(int32_t token) const override { return vocabulary_.entry_of(token); }
  void begin_text(std::span<const int32_t> tokens) override { vocabulary_.begin(tokens); }
  void extend_text(std::span<const int32_t> tokens) override { vocabulary_.add(tokens); }
  int skipped_tokens() const override { return 1; }
  std::span<const int> hidden_layers() const override { return head_->manifest().feature_layers; }
  int hidden_state_size() const override { return head_->manifest().feature_size(); }
  Result<std::unique_ptr<KvStore>> make_kv(int slots) const override {
    return head_->make_kv(slots);
  }
  Status forward(const DraftPass& pass, KvStore* kv, std::span<float> logits) override;
  std::optional<float> uncertainty(int node) override;
  void move_node(int from, int to) override;

 private:
  std::span<float> state_of(int node);

  const std::shared_ptr<DraftHead> head_;
  TextVocabulary vocabulary_;
  const size_t state_size_;
  std::vector<float> states_;   // [1 + DraftTree::kCapacity][state_size], the text's end first
  std::vector<float> parents_;  // of one pass's nodes, [max_rows][state_size]
};

}  // namespace sapwood
