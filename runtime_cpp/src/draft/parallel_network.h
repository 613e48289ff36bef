// Parallel heads that draft: one pass at the text's end gives the laws of all depths, and looking
// beyond a node is reading the law of its depth.
#pragma once

#include <memory>
#include <vector>

#include "draft/draft_network.h"
#include "model/parallel_heads.h"

namespace sapwood {

class ParallelNetwork final : public DraftNetwork {
 public:
  explicit ParallelNetwork(std::shared_ptr<ParallelHeads> heads);

  int vocabulary_size() const override { return heads_->manifest().target.vocabulary_size; }
  int context_length() const override { return heads_->context_length(); }
  int max_rows() const override { return kMaxRows; }
  int max_depth() const override { return heads_->depths() - 1; }
  int law_size() const override { return vocabulary_.size(); }
  std::span<const int32_t> token_ids() const override { return vocabulary_.tokens(); }
  int entry_of(int32_t token) const override { return vocabulary_.entry_of(token); }
  void begin_text(std::span<const int32_t> tokens) override { vocabulary_.begin(tokens); }
  void extend_text(std::span<const int32_t> tokens) override { vocabulary_.add(tokens); }
  int skipped_tokens() const override { return 1; }
  std::span<const int> hidden_layers() const override { return heads_->manifest().feature_layers; }
  int hidden_state_size() const override { return heads_->manifest().feature_size(); }
  Result<std::unique_ptr<KvStore>> make_kv(int) const override {
    return std::unique_ptr<KvStore>();
  }
  Status forward(const DraftPass& pass, KvStore* kv, std::span<float> logits) override;
  std::optional<float> uncertainty(int node) override;

 private:
  static constexpr int kMaxRows = 64;

  const std::shared_ptr<ParallelHeads> heads_;
  TextVocabulary vocabulary_;
  std::vector<float> laws_;                        // [depths][law_size]
  std::vector<std::optional<float>> uncertainty_;  // by depth
  std::vector<int16_t> depths_;                    // by node looked beyond
};

}  // namespace sapwood
