// What a trained draft makes of a position: the target's hidden states there and the token that
// came next, folded into one vector of the target's hidden size.
//
//   g = W_fuse f                                             of a position the target has verified
//   z = W_input [rms_norm(e(token); n_e) ; rms_norm(g; n_g)]
//
// f: outputs of some of the target's layers side by side; e: the target's own embedding. Beyond
// what the target has verified the draft's own output takes the place of g (EAGLE-3: Li et al.,
// 2025, section 3).
#pragma once

#include <cstdint>
#include <memory>
#include <span>

#include "base/thread_team.h"
#include "kernels/scratch.h"
#include "model/bundle.h"
#include "model/draft_folder.h"
#include "model/text_vocabulary.h"

namespace sapwood {

class DraftInput {
 public:
  // Scratch for so many rows is made here. Both stay open as long as it lives.
  DraftInput(std::shared_ptr<const DraftFolder> draft, std::shared_ptr<const Bundle> target,
             int max_rows);

  // z [tokens.size()][hidden_size]. The first rows are of verified positions, as many as `features`
  // [..][feature_size] has; the others take their g from `states` [..][hidden_size]. Called by
  // every member of the team; ends with a barrier.
  void fold(std::span<const int32_t> tokens, std::span<const float> features,
            std::span<const float> states, float* z, ThreadTeam& team, int thread);

  // For a text. It has places for tokens that the draft lacks if the draft's head is the target's
  // own, cut down to the draft's tokens.
  TextVocabulary make_vocabulary() const;

  const DraftFolder& draft() const { return *draft_; }
  const Bundle& target() const { return *target_; }

 private:
  const std::shared_ptr<const DraftFolder> draft_;
  const std::shared_ptr<const Bundle> target_;
  const LinearWeights embedding_;
  const LinearWeights fuse_;
  const LinearWeights input_;
  const float* const embedding_norm_;
  const float* const feature_norm_;
  const int hidden_size_;
  const int feature_size_;
  const LinearWeights target_head_;
  const int text_places_;
  ScratchArray<float> fused_;  // [rows][hidden_size]
  ScratchArray<float> both_;   // [rows][2 hidden_size]
  QuantizedScratch quantized_;
};

}  // namespace sapwood
