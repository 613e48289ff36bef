#include "model/native.h"

#include <atomic>
#include <utility>
#include <vector>

#include "kernels/hidden_states.h"
#include "memory/pooled_floats.h"
#include "model/check_batch.h"
#include "model/host_options.h"

namespace sapwood {
namespace {

constexpr int kFirstContext = 2048;  // visible tokens the scratch memory is first made for

ModelSpec first_layers(ModelSpec spec, int layers) {
  if (layers > 0) {
    spec.layers = layers;
    spec.layer_is_sliding.resize(layers);
  }
  return spec;
}

class NativeModel final : public Model {
 public:
  NativeModel(std::shared_ptr<const Bundle> bundle, const NativeOptions& options)
      : bundle_(std::move(bundle)),
        spec_(first_layers(bundle_->spec(), options.layers)),
        max_rows_(options.max_rows),
        team_(options.team != nullptr ? options.team
                                      : std::make_shared<ThreadTeam>(options.threads)),
        embedding_(bundle_->linear("embedding")),
        head_(spec_.tied_head ? embedding_ : bundle_->linear("head")),
        final_norm_(bundle_->vector("final_norm")),
        hidden_(pooled_floats(static_cast<size_t>(max_rows_) * spec_.hidden_size)),
        rotary_global_(static_cast<size_t>(max_rows_) * spec_.head_dim),
        rotary_local_(bundle_->rope_local().empty() ? 0 : rotary_global_.size()) {
    for (int layer = 0; layer < spec_.layers; ++layer) {
      shapes_.push_back(spec_.layer_shape(layer));
      layers_.push_back(bundle_->layer(layer));
    }
    grow_workspace(kFirstContext);
  }

  const ModelSpec& spec() const override { return spec_; }
  std::string_view host() const override { return "native"; }
  std::shared_ptr<ThreadTeam> team() const override { return team_; }
  int max_rows() const override { return max_rows_; }
  bool takes(KvFormat) const override { return true; }

  bool shows_hidden_states() const override { return true; }

  Status keep_hidden_states(std::span<const int> layers) override {
    return kept_.choose(layers, spec_.layers, max_rows_, spec_.hidden_size);
  }

  std::span<const int> kept_layers() const override { return kept_.layers(); }
  std::span<const float> hidden_states() const override { return kept_.states(); }

  void set_deadline(Deadline deadline) override { deadline_ = deadline; }

  Status forward(const RowBatch& batch, KvStore& kv, std::span<float> logits) override {
    SAPWOOD_TRY(check_batch(batch, spec_, kv, max_rows_, logits.size()));
    if (kv.slots() > workspace_->max_context()) grow_workspace(kv.slots());
    rotary_table(batch.positions, bundle_->rope_global(), rotary_global_.data());
    if (!rotary_local_.empty()) {
      rotary_table(batch.positions, bundle_->rope_local(), rotary_local_.data());
    }
    const int rows = batch.rows();
    kept_.begin(rows);
    const bool may_stop = deadline_ != kNoDeadline && rows > 1;
    stop_before_ = spec_.layers;
    team_->run([&](int thread) {
      token_embedding(embedding_, batch.tokens, spec_.embedding_scale, hidden_.get(), *team_,
                      thread);
      keep(0, rows, thread);
      for (int layer = 0; layer < spec_.layers; ++layer) {
        // Member 0 decides a layer ahead: the barriers in between let all members see it.
        if (may_stop && stop_before_ <= layer) return;
        if (may_stop && thread == 0 && is_past(deadline_)) stop_before_ = layer + 1;
        const bool local = spec_.layer_is_sliding[layer] && !rotary_local_.empty();
        const bool last = layer + 1 == spec_.layers;
        decoder_layer(shapes_[layer], layers_[layer], batch,
                      local ? rotary_local_.data() : rotary_global_.data(), kv.layer(layer),
                      hidden_.get(), *workspace_, *team_, thread,
                      last && batch.output_rows.empty() && !kept_.keeps(spec_.layers));
        keep(layer + 1, rows, thread);
      }
      if (!batch.output_rows.empty()) {
        output_head(final_norm_, spec_.norm_epsilon, head_, hidden_.get(), spec_.hidden_size,
                    batch.output_rows, logits.data(), *workspace_, *team_, thread);
      }
    });
    if (stop_before_ < spec_.layers) {
      return Status(Code::kCancelled, "a pass was given up at its deadline");
    }
    return Status::okay();
  }

 private:
  // This member's share of the rows. Nobody writes to hidden_ before the next layer's barriers.
  void keep(int layer, int rows, int thread) {
    const auto [begin, end] = team_->share(rows, thread);
    kept_.keep(layer, hidden_.get(), begin, end);
  }

  void grow_workspace(int context) {
    workspace_ =
        std::make_unique<LayerWorkspace>(shapes_.front(), max_rows_, context, team_->size());
  }

  const std::shared_ptr<const Bundle> bundle_;
  const ModelSpec spec_;
  const int max_rows_;
  const std::shared_ptr<ThreadTeam> team_;
  const LinearWeights embedding_;
  const LinearWeights head_;
  const float* const final_norm_;
  std::vector<LayerShape> shapes_;
  std::vector<LayerWeights> layers_;
  std::shared_ptr<float[]> hidden_;  // [max_rows][hidden_size]
  HiddenStates kept_;
  Deadline deadline_ = kNoDeadline;
  std::atomic<int> stop_before_{0};   // the layer before which the pass is given up
  std::vector<float> rotary_global_;  // [max_rows][head_dim]
  std::vector<float> rotary_local_;   // likewise, or empty
  std::unique_ptr<LayerWorkspace> workspace_;
};

}  // namespace

Result<std::unique_ptr<Model>> open_native_model(std::shared_ptr<const Bundle> bundle,
                                                 const NativeOptions& options) {
  SAPWOOD_TRY(check_host_options(options.threads, options.max_rows));
  if (options.layers < 0 || options.layers > bundle->spec().layers) {
    return Status(Code::kInvalidArgument,
                  "layers: " + std::to_string(options.layers) + " is not between 1 and the " +
                      std::to_string(bundle->spec().layers) + " of this model");
  }
  return std::unique_ptr<Model>(std::make_unique<NativeModel>(std::move(bundle), options));
}

}  // namespace sapwood
