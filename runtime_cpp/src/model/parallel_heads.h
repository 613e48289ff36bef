// Parallel draft heads on the native host (Medusa: Cai et al., 2024): from the last verified
// position alone, the laws of the tokens at depths 1 .. K beyond the next one, whatever the tokens
// between turn out to be.
//
//   logits_d = W_head rms_norm(z + silu(W_d z); n_out)         z as in draft_input.h
#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>

#include "base/status.h"
#include "base/thread_team.h"
#include "kernels/scratch.h"
#include "model/draft_input.h"
#include "model/native.h"
#include "tree/uncertainty_head.h"

namespace sapwood {

class ParallelHeads {
 public:
  // Of kind kParallelHeads, for this target (check_fits). Of the options, threads and team apply.
  static Result<std::unique_ptr<ParallelHeads>> open(std::shared_ptr<const DraftFolder> draft,
                                                     std::shared_ptr<const Bundle> target,
                                                     const NativeOptions& options);

  const DraftManifest& manifest() const { return input_.draft().manifest(); }
  int context_length() const { return input_.target().spec().context_length; }
  int depths() const { return manifest().parallel; }
  // One for each text that is drafted for.
  TextVocabulary make_vocabulary() const { return input_.make_vocabulary(); }

  // token: the one after the position whose hidden states `features` [feature_size] are. logits
  // [depths()][vocabulary.size()]: of the token after it, and of those beyond. Does not allocate.
  Status forward(int32_t token, std::span<const float> features, const TextVocabulary& vocabulary,
                 std::span<float> logits);

  // Of the latest pass at a depth from 0: as DraftHead::uncertainty.
  std::optional<float> uncertainty(int depth) const;

 private:
  ParallelHeads(std::shared_ptr<const DraftFolder> draft, std::shared_ptr<const Bundle> target,
                const NativeOptions& options, std::optional<UncertaintyHead> uncertainty);

  DraftInput input_;
  const std::shared_ptr<ThreadTeam> team_;
  const std::vector<LinearWeights> depth_;  // W_d
  const LinearWeights head_;
  const float* const output_norm_;
  const std::optional<UncertaintyHead> uncertainty_;
  const size_t hidden_size_;
  ScratchArray<float> folded_;  // z
  ScratchArray<float> states_;  // [depths][hidden_size], normed in the end
  QuantizedScratch quantized_;
};

}  // namespace sapwood
