#include "model/parallel_heads.h"

#include <array>
#include <cmath>
#include <string>
#include <utility>
#include <vector>

#include "kernels/kernels.h"
#include "kernels/team_linear.h"
#include "model/host_options.h"

namespace sapwood {
namespace {

std::vector<LinearWeights> depth_weights(const DraftFolder& draft) {
  std::vector<LinearWeights> weights;
  for (int depth = 0; depth < draft.manifest().parallel; ++depth) {
    weights.push_back(draft.tensors().linear("parallel." + std::to_string(depth)));
  }
  return weights;
}

}  // namespace

ParallelHeads::ParallelHeads(std::shared_ptr<const DraftFolder> draft,
                             std::shared_ptr<const Bundle> target, const NativeOptions& options,
                             std::optional<UncertaintyHead> uncertainty)
    : input_(std::move(draft), std::move(target), 1),
      team_(options.team != nullptr ? options.team : std::make_shared<ThreadTeam>(options.threads)),
      depth_(depth_weights(input_.draft())),
      head_(input_.draft().tensors().linear("head")),
      output_norm_(input_.draft().tensors().values("output_norm").data()),
      uncertainty_(std::move(uncertainty)),
      hidden_size_(static_cast<size_t>(manifest().spec.hidden_size)),
      folded_(hidden_size_),
      states_(depth_.size() * hidden_size_),
      quantized_(depth_.size(), hidden_size_) {}

Result<std::unique_ptr<ParallelHeads>> ParallelHeads::open(std::shared_ptr<const DraftFolder> draft,
                                                           std::shared_ptr<const Bundle> target,
                                                           const NativeOptions& options) {
  SAPWOOD_TRY(check_host_options(options.threads, options.max_rows));
  SAPWOOD_TRY(check_kind(*draft, DraftKind::kParallelHeads));
  SAPWOOD_TRY(check_fits(*draft, *target));
  Result<std::optional<UncertaintyHead>> uncertainty = uncertainty_head_of(*draft);
  if (!uncertainty.ok()) return uncertainty.status();
  return std::unique_ptr<ParallelHeads>(new ParallelHeads(std::move(draft), std::move(target),
                                                          options, std::move(uncertainty).value()));
}

Status ParallelHeads::forward(int32_t token, std::span<const float> features,
                              const TextVocabulary& vocabulary, std::span<float> logits) {
  const size_t depths = depth_.size();
  const size_t law = static_cast<size_t>(vocabulary.size());
  if (token < 0 || token >= manifest().target.vocabulary_size ||
      features.size() != static_cast<size_t>(manifest().feature_size()) ||
      logits.size() < depths * law) {
    return Status(Code::kInvalidArgument,
                  "parallel heads: a token, hidden states or logits do not fit");
  }
  const int hidden = manifest().spec.hidden_size;
  const std::array<LinearWeights, 2> heads = {head_, vocabulary.rows()};
  team_->run([&](int thread) {
    input_.fold({&token, 1}, features, {}, folded_.data(), *team_, thread);
    for (size_t d = 0; d < depths; ++d) {
      team_linear(depth_[d], folded_.data(), 1, states_.data() + d * hidden_size_, quantized_,
                  *team_, thread);
    }
    const auto [begin, end] = team_->share(static_cast<int>(depths), thread);
    for (int d = begin; d < end; ++d) {
      float* state = states_.data() + static_cast<size_t>(d) * hidden_size_;
      for (int i = 0; i < hidden; ++i) {
        state[i] = folded_.data()[i] + state[i] / (1.f + std::exp(-state[i]));
      }
      kernels().rms_norm(state, hidden, output_norm_, manifest().spec.norm_epsilon, 1, hidden,
                         state, hidden);
    }
    team_linear(heads, states_.data(), static_cast<int>(depths), logits.data(), vocabulary.size(),
                quantized_, *team_, thread);
  });
  for (size_t d = 0; d < depths; ++d) vocabulary.fill_untaken(logits.subspan(d * law, law));
  return Status::okay();
}

std::optional<float> ParallelHeads::uncertainty(int depth) const {
  if (!uncertainty_) return std::nullopt;
  return uncertainty_->uncertainty(
      {states_.data() + static_cast<size_t>(depth) * hidden_size_, hidden_size_});
}

}  // namespace sapwood
