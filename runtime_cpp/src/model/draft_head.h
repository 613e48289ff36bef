// A trained draft head on the native host: one decoder layer over the target's hidden states and
// its own (EAGLE-3: Li et al., 2025), with an output head over a subset of the vocabulary.
//
// Row i stands for position i of the text: it reads the token at i + 1 and the target's hidden
// states at i (draft_input.h), and gives the law of the token at i + 2. A row beyond what the
// target has verified reads the state of the row before it on its path instead. Like the target's
// rows, a row's bits do not depend on how many stand beside it.
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "base/status.h"
#include "base/thread_team.h"
#include "kernels/decoder_layer.h"
#include "kernels/row_batch.h"
#include "memory/kv_store.h"
#include "model/draft_input.h"
#include "model/native.h"
#include "model/text_vocabulary.h"
#include "tree/uncertainty_head.h"

namespace sapwood {

class DraftHead {
 public:
  // Of kind kHead, for this target (check_fits). Of the options, `layers` does not apply.
  static Result<std::unique_ptr<DraftHead>> open(std::shared_ptr<const DraftFolder> draft,
                                                 std::shared_ptr<const Bundle> target,
                                                 const NativeOptions& options);

  const DraftManifest& manifest() const { return input_.draft().manifest(); }
  const ModelSpec& spec() const { return manifest().spec; }
  // Of the target: positions beyond it are not drafted.
  int context_length() const { return input_.target().spec().context_length; }
  // One for each text that is drafted for.
  TextVocabulary make_vocabulary() const { return input_.make_vocabulary(); }
  int max_rows() const { return max_rows_; }

  // Of one layer, as its passes want it.
  Result<std::unique_ptr<KvStore>> make_kv(int slots) const;

  // One pass. batch: tokens of the target's vocabulary; positions, slots and paths of `kv`.
  // features [..][feature_size] of the first rows, states [..][hidden_size] of all others; logits
  // [output_rows][vocabulary.size()]. A batch that contradicts itself is an error and changes
  // nothing. Must not allocate unless `kv` has grown.
  Status forward(const RowBatch& batch, std::span<const float> features,
                 std::span<const float> states, const TextVocabulary& vocabulary, KvStore& kv,
                 std::span<float> logits);

  // Of the latest pass that was asked for logits, [rows][hidden_size]: what a row's children read.
  std::span<const float> states() const { return {states_.data(), state_floats_}; }

  // In [0, 1]: how probable it is that the target rejects what follows this row; empty if the draft
  // has no uncertainty network. state [hidden_size]: one of states().
  std::optional<float> uncertainty(std::span<const float> state);

 private:
  DraftHead(std::shared_ptr<const DraftFolder> draft, std::shared_ptr<const Bundle> target,
            const NativeOptions& options, std::optional<UncertaintyHead> uncertainty);
  void grow_workspace(int context);

  DraftInput input_;
  const int max_rows_;
  const std::shared_ptr<ThreadTeam> team_;
  const ModelSpec checked_as_;  // its spec with the target's vocabulary, which its tokens are of
  const LayerShape shape_;
  const LayerWeights layer_;
  const LinearWeights head_;
  const float* const output_norm_;
  const std::optional<UncertaintyHead> uncertainty_;
  std::vector<float> states_;  // [max_rows][hidden_size]
  size_t state_floats_ = 0;    // of the latest pass
  std::vector<float> rotary_;  // [max_rows][head_dim]
  std::vector<float> normed_;  // [hidden_size]
  std::unique_ptr<LayerWorkspace> workspace_;
};

}  // namespace sapwood
