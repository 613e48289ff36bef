#include "operators/executorch/model.h"

#include <executorch/runtime/core/exec_aten/exec_aten.h>

#include <algorithm>
#include <array>
#include <utility>
#include <vector>

#include "model/check_batch.h"
#include "operators/executorch/log.h"
#include "operators/executorch/operator.h"
#include "operators/executorch/program.h"

namespace sapwood::executorch {
namespace {

using ::executorch::aten::TensorImpl;
using ::executorch::runtime::Error;
using ::executorch::runtime::Method;

constexpr int kFirstContext = 2048;  // visible tokens the scratch memory is first made for

class ExecutorchModel final : public Model {
 public:
  ExecutorchModel(std::shared_ptr<const Bundle> bundle, std::unique_ptr<LoadedProgram> program,
                  const ExecutorchOptions& options)
      : bundle_(std::move(bundle)),
        spec_(bundle_->spec()),
        program_(std::move(program)),
        max_rows_(std::min(options.max_rows, program_->max_rows())),
        resources_(options.threads),
        path_ranges_(static_cast<size_t>(max_rows_) * 2),
        bound_(spec_.layers) {
    resources_.layer_workspace(spec_.layer_shape(0), max_rows_, kFirstContext);
  }

  const ModelSpec& spec() const override { return spec_; }
  std::string_view host() const override { return "executorch"; }
  int max_rows() const override { return max_rows_; }
  std::shared_ptr<ThreadTeam> team() const override { return resources_.shared_team(); }

  // XNNPACK's flavour computes its layers in pieces.
  bool shows_hidden_states() const override {
    return bundle_->manifest().executorch.flavour == "fused";
  }
  Status keep_hidden_states(std::span<const int> layers) override {
    if (!layers.empty() && !shows_hidden_states()) {
      return Status(Code::kUnsupported,
                    "the flavour xnnpack of a program for ExecuTorch does not show hidden states; "
                    "export the flavour fused, or use --host native");
    }
    return resources_.hidden_states().choose(layers, spec_.layers, max_rows_, spec_.hidden_size);
  }
  std::span<const int> kept_layers() const override { return resources_.hidden_states().layers(); }
  std::span<const float> hidden_states() const override {
    return resources_.hidden_states().states();
  }

  Status forward(const RowBatch& batch, KvStore& kv, std::span<float> logits) override {
    SAPWOOD_TRY(check_format(*this, kv.format()));
    SAPWOOD_TRY(check_batch(batch, spec_, kv, max_rows_, logits.size()));
    const KeptLog log;
    for (int row = 0; row < batch.rows(); ++row) {
      path_ranges_[2 * row] = batch.path_begin[row];
      path_ranges_[2 * row + 1] = batch.path_end[row];
    }
    const std::span<const int32_t> ranges(path_ranges_);
    SAPWOOD_TRY(bind_caches(kv, log));
    SAPWOOD_TRY(bind_indices(kTokenIds, batch.tokens, log));
    SAPWOOD_TRY(bind_indices(kPositions, batch.positions, log));
    SAPWOOD_TRY(bind_indices(kSlots, batch.slots, log));
    SAPWOOD_TRY(bind_indices(kContextSlots, batch.context_slots, log));
    SAPWOOD_TRY(bind_indices(kPathSlots, batch.path_slots, log));
    SAPWOOD_TRY(bind_ranges(ranges.first(2 * batch.tokens.size()), log));
    SAPWOOD_TRY(bind_indices(kOutputRows, batch.output_rows, log));
    SAPWOOD_TRY(bind_logits(logits, log));
    const UsedResources used(resources_);
    resources_.begin_pass(batch.rows());
    SAPWOOD_TRY(log.status(method().execute(), Code::kInternal, kHost));
    return resources_.end_pass(spec_.layers);
  }

 private:
  static constexpr const char* kHost = "host executorch";

  // The memory that a layer's cache was last bound to.
  struct BoundCache {
    const void* keys = nullptr;
    int slots = 0;
  };

  Method& method() { return program_->method(); }

  // Makes the input a view of this memory, which is not copied: the graph was exported without
  // memory of its own for its inputs.
  template <size_t Axes>
  Status bind(size_t input, ::executorch::aten::ScalarType type, std::array<int32_t, Axes> sizes,
              const void* data, const KeptLog& log) {
    static int64_t nothing = 0;  // an empty tensor needs an address all the same
    std::array<uint8_t, Axes> order;
    std::array<int32_t, Axes> strides;
    int32_t stride = 1;
    for (size_t axis = Axes; axis-- > 0;) {
      order[axis] = static_cast<uint8_t>(axis);
      strides[axis] = stride;
      stride *= std::max(sizes[axis], 1);
    }
    TensorImpl tensor(type, Axes, sizes.data(),
                      data != nullptr ? const_cast<void*>(data) : static_cast<void*>(&nothing),
                      order.data(), strides.data());
    return log.status(method().set_input(::executorch::aten::Tensor(&tensor), input),
                      Code::kUnsupported, kHost);
  }

  Status bind_indices(size_t input, std::span<const int32_t> values, const KeptLog& log) {
    return bind<1>(input, ScalarType::Int, {static_cast<int32_t>(values.size())}, values.data(),
                   log);
  }

  Status bind_ranges(std::span<const int32_t> ranges, const KeptLog& log) {
    return bind<2>(kPathRanges, ScalarType::Int, {static_cast<int32_t>(ranges.size() / 2), 2},
                   ranges.data(), log);
  }

  Status bind_caches(const KvStore& kv, const KeptLog& log) {
    for (int index = 0; index < spec_.layers; ++index) {
      const KvLayerView layer = kv.layer(index);
      const KvLayout& layout = layer.layout;
      BoundCache& bound = bound_[index];
      if (layer.keys == bound.keys && layout.slots == bound.slots) continue;
      bound.keys = nullptr;  // until both are bound
      SAPWOOD_TRY(bind<4>(kPassInputs + index, ScalarType::Half,
                          {layout.kv_heads, layout.slots / kKeyTile, layout.head_dim, kKeyTile},
                          layer.keys, log));
      SAPWOOD_TRY(bind<3>(kPassInputs + spec_.layers + index, ScalarType::Half,
                          {layout.kv_heads, layout.slots, layout.head_dim}, layer.values, log));
      bound = {layer.keys, layout.slots};
    }
    return Status::okay();
  }

  // ExecuTorch asks for room for the output as it is now: at first of as many rows as there can be,
  // then of the latest pass. What is written is of this pass, which check_batch has measured.
  Status bind_logits(std::span<float> logits, const KeptLog& log) {
    static float nothing = 0.f;
    void* data = logits.empty() ? &nothing : logits.data();
    const size_t bytes = method().get_output(0).toTensor().nbytes();
    return log.status(method().set_output_data_ptr(data, std::max(bytes, logits.size_bytes()), 0),
                      Code::kInternal, kHost);
  }

  const std::shared_ptr<const Bundle> bundle_;
  const ModelSpec spec_;
  const std::unique_ptr<LoadedProgram> program_;
  const int max_rows_;
  operators::Resources resources_;
  std::vector<int32_t> path_ranges_;  // [max_rows][2]
  std::vector<BoundCache> bound_;     // [layers]
};

}  // namespace

Result<std::unique_ptr<Model>> open_model(std::shared_ptr<const Bundle> bundle,
                                          const ExecutorchOptions& options) {
  Result<std::unique_ptr<LoadedProgram>> program = LoadedProgram::open(bundle, options);
  if (!program.ok()) return program.status();
  return std::unique_ptr<Model>(
      std::make_unique<ExecutorchModel>(std::move(bundle), std::move(program).value(), options));
}

}  // namespace sapwood::executorch
