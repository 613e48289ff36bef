#include "model/draft_input.h"

#include <algorithm>
#include <utility>

#include "kernels/kernels.h"
#include "kernels/packed_rows.h"
#include "kernels/team_linear.h"

namespace sapwood {
namespace {

constexpr int kTextPlaces = 512;

// For tokens of a text beside the draft's own.
int text_places(const DraftFolder& draft, const LinearWeights& target_head) {
  const LinearWeights head = draft.tensors().linear("head");
  const std::span<const int32_t> tokens = draft.vocabulary_ids();
  for (int entry = 0; entry < head.outputs; ++entry) {
    if (!same_packed_row(head, entry, target_head, tokens[entry])) return 0;
  }
  return std::min(kTextPlaces, target_head.outputs - head.outputs);
}

}  // namespace

DraftInput::DraftInput(std::shared_ptr<const DraftFolder> draft,
                       std::shared_ptr<const Bundle> target, int max_rows)
    : draft_(std::move(draft)),
      target_(std::move(target)),
      embedding_(target_->embedding()),
      fuse_(draft_->tensors().linear("fuse")),
      input_(draft_->tensors().linear("input")),
      embedding_norm_(draft_->tensors().values("embedding_norm").data()),
      feature_norm_(draft_->tensors().values("feature_norm").data()),
      hidden_size_(draft_->manifest().spec.hidden_size),
      feature_size_(draft_->manifest().feature_size()),
      target_head_(target_->head()),
      text_places_(text_places(*draft_, target_head_)),
      fused_(static_cast<size_t>(max_rows) * hidden_size_),
      both_(static_cast<size_t>(max_rows) * 2 * hidden_size_),
      quantized_(max_rows, std::max(feature_size_, 2 * hidden_size_)) {}

TextVocabulary DraftInput::make_vocabulary() const {
  return {draft_->vocabulary_ids(), target_head_, text_places_};
}

void DraftInput::fold(std::span<const int32_t> tokens, std::span<const float> features,
                      std::span<const float> states, float* z, ThreadTeam& team, int thread) {
  const KernelTable& kernel = kernels();
  const int rows = static_cast<int>(tokens.size());
  const int verified = static_cast<int>(features.size()) / feature_size_;
  if (verified > 0) {
    team_linear(fuse_, features.data(), verified, fused_.data(), quantized_, team, thread);
  }
  const float epsilon = draft_->manifest().spec.norm_epsilon;
  const auto [begin, end] = team.share(rows, thread);
  for (int row = begin; row < end; ++row) {
    float* embedded = both_.data() + static_cast<size_t>(row) * 2 * hidden_size_;
    kernel.embed(embedding_, tokens[row], target_->spec().embedding_scale, embedded);
    kernel.rms_norm(embedded, hidden_size_, embedding_norm_, epsilon, 1, hidden_size_, embedded,
                    hidden_size_);
    const float* g = row < verified
                         ? fused_.data() + static_cast<size_t>(row) * hidden_size_
                         : states.data() + static_cast<size_t>(row - verified) * hidden_size_;
    kernel.rms_norm(g, hidden_size_, feature_norm_, epsilon, 1, hidden_size_,
                    embedded + hidden_size_, hidden_size_);
  }
  team_linear(input_, both_.data(), rows, z, quantized_, team, thread);
}

}  // namespace sapwood
