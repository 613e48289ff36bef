#include "model/draft_head.h"

#include <array>
#include <string>
#include <utility>

#include "kernels/kernels.h"
#include "model/check_batch.h"
#include "model/host_options.h"

namespace sapwood {
namespace {

constexpr int kFirstContext = 2048;  // visible rows the scratch memory is first made for

ModelSpec with_vocabulary(ModelSpec spec, int vocabulary) {
  spec.vocabulary_size = vocabulary;
  return spec;
}

}  // namespace

DraftHead::DraftHead(std::shared_ptr<const DraftFolder> draft, std::shared_ptr<const Bundle> target,
                     const NativeOptions& options, std::optional<UncertaintyHead> uncertainty)
    : input_(std::move(draft), std::move(target), options.max_rows),
      max_rows_(options.max_rows),
      team_(options.team != nullptr ? options.team : std::make_shared<ThreadTeam>(options.threads)),
      checked_as_(with_vocabulary(spec(), manifest().target.vocabulary_size)),
      shape_(spec().layer_shape(0)),
      layer_(input_.draft().tensors().layer("layer.")),
      head_(input_.draft().tensors().linear("head")),
      output_norm_(input_.draft().tensors().values("output_norm").data()),
      uncertainty_(std::move(uncertainty)),
      states_(static_cast<size_t>(max_rows_) * spec().hidden_size),
      rotary_(static_cast<size_t>(max_rows_) * spec().head_dim),
      normed_(spec().hidden_size) {
  grow_workspace(kFirstContext);
}

Result<std::unique_ptr<DraftHead>> DraftHead::open(std::shared_ptr<const DraftFolder> draft,
                                                   std::shared_ptr<const Bundle> target,
                                                   const NativeOptions& options) {
  SAPWOOD_TRY(check_host_options(options.threads, options.max_rows));
  SAPWOOD_TRY(check_kind(*draft, DraftKind::kHead));
  SAPWOOD_TRY(check_fits(*draft, *target));
  Result<std::optional<UncertaintyHead>> uncertainty = uncertainty_head_of(*draft);
  if (!uncertainty.ok()) return uncertainty.status();
  return std::unique_ptr<DraftHead>(
      new DraftHead(std::move(draft), std::move(target), options, std::move(uncertainty).value()));
}

void DraftHead::grow_workspace(int context) {
  workspace_ = std::make_unique<LayerWorkspace>(shape_, max_rows_, context, team_->size());
}

Result<std::unique_ptr<KvStore>> DraftHead::make_kv(int slots) const {
  return KvStore::create(1, spec().kv_heads, spec().head_dim, slots);
}

Status DraftHead::forward(const RowBatch& batch, std::span<const float> features,
                          std::span<const float> states, const TextVocabulary& vocabulary,
                          KvStore& kv, std::span<float> logits) {
  const size_t law = static_cast<size_t>(vocabulary.size());
  const size_t hidden = static_cast<size_t>(spec().hidden_size);
  const size_t rows = batch.tokens.size();
  // Its tokens are the target's, its laws are narrower.
  SAPWOOD_TRY(check_batch(batch, checked_as_, kv, max_rows_,
                          batch.output_rows.size() * checked_as_.vocabulary_size));
  const size_t verified = features.size() / manifest().feature_size();
  if (features.size() % manifest().feature_size() != 0 || verified > rows ||
      states.size() != (rows - verified) * hidden ||
      logits.size() < batch.output_rows.size() * law) {
    return Status(Code::kInvalidArgument,
                  "batch: hidden states or logits do not fit " + std::to_string(rows) + " rows");
  }
  if (kv.slots() > workspace_->max_context()) grow_workspace(kv.slots());
  const std::array<LinearWeights, 2> heads = {head_, vocabulary.rows()};
  rotary_table(batch.positions, input_.target().rope_global(), rotary_.data());
  team_->run([&](int thread) {
    input_.fold(batch.tokens, features, states, states_.data(), *team_, thread);
    decoder_layer(shape_, layer_, batch, rotary_.data(), kv.layer(0), states_.data(), *workspace_,
                  *team_, thread, batch.output_rows.empty());
    if (!batch.output_rows.empty()) {
      output_head(output_norm_, spec().norm_epsilon, heads, states_.data(), spec().hidden_size,
                  batch.output_rows, logits.data(), vocabulary.size(), *workspace_, *team_, thread);
    }
  });
  for (size_t row = 0; row < batch.output_rows.size(); ++row) {
    vocabulary.fill_untaken(logits.subspan(row * law, law));
  }
  state_floats_ = rows * hidden;
  return Status::okay();
}

std::optional<float> DraftHead::uncertainty(std::span<const float> state) {
  if (!uncertainty_) return std::nullopt;
  const int hidden = spec().hidden_size;
  kernels().rms_norm(state.data(), hidden, output_norm_, spec().norm_epsilon, 1, hidden,
                     normed_.data(), hidden);
  return uncertainty_->uncertainty(normed_);
}

}  // namespace sapwood
