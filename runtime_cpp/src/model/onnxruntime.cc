#include "model/onnxruntime.h"

#include <onnxruntime_c_api.h>

#include <array>
#include <utility>
#include <vector>

#include "model/check_batch.h"
#include "model/host_options.h"
#include "model/onnxruntime_graph.h"
#include "model/onnxruntime_library.h"
#include "operators/onnxruntime/operator.h"
#include "operators/onnxruntime/ort_status.h"
#include "operators/resources.h"

namespace sapwood {
namespace {

constexpr int kFirstContext = 2048;  // visible tokens the scratch memory is first made for

// Owns an object of ONNX Runtime's.
template <typename T>
class Owned {
 public:
  explicit Owned(void (*release)(T*)) : release_(release) {}
  ~Owned() { release_(object_); }  // null is allowed
  Owned(Owned&& other) noexcept
      : release_(other.release_), object_(std::exchange(other.object_, nullptr)) {}
  Owned& operator=(const Owned&) = delete;

  T* get() const { return object_; }
  T** fill() {  // for the functions that make one
    release_(std::exchange(object_, nullptr));
    return &object_;
  }

 private:
  void (*release_)(T*);
  T* object_ = nullptr;
};

class OnnxRuntimeModel final : public Model {
 public:
  OnnxRuntimeModel(const OrtApi& api, std::shared_ptr<const Bundle> bundle,
                   const OnnxRuntimeOptions& options)
      : api_(api),
        bundle_(std::move(bundle)),
        spec_(bundle_->spec()),
        max_rows_(options.max_rows),
        resources_(std::make_shared<operators::Resources>(options.threads)),
        path_ranges_(static_cast<size_t>(max_rows_) * 2),
        env_(api.ReleaseEnv),
        session_(api.ReleaseSession),
        memory_(api.ReleaseMemoryInfo),
        binding_(api.ReleaseIoBinding) {}

  Status open(const std::string& path);

  const ModelSpec& spec() const override { return spec_; }
  std::string_view host() const override { return "onnxruntime"; }
  int max_rows() const override { return max_rows_; }
  std::shared_ptr<ThreadTeam> team() const override { return resources_->shared_team(); }

  bool shows_hidden_states() const override { return true; }
  Status keep_hidden_states(std::span<const int> layers) override {
    return resources_->hidden_states().choose(layers, spec_.layers, max_rows_, spec_.hidden_size);
  }
  std::span<const int> kept_layers() const override { return resources_->hidden_states().layers(); }
  std::span<const float> hidden_states() const override {
    return resources_->hidden_states().states();
  }

  Status forward(const RowBatch& batch, KvStore& kv, std::span<float> logits) override;

 private:
  // The memory that a layer's cache was last bound to, and the names it has in the graph.
  struct BoundCache {
    std::string past_keys, past_values, present_keys, present_values;
    const void* keys = nullptr;
    int slots = 0;
  };

  Status configure(OrtSessionOptions* options);
  Status bind_cache(BoundCache& cache, const KvLayerView& layer);
  Status bind_indices(const char* name, std::span<const int32_t> values);
  Status bind_ranges(const RowBatch& batch);
  Status bind_logits(size_t rows, std::span<float> logits);

  // A tensor over memory that someone else owns.
  Status tensor(void* data, std::span<const int64_t> shape, ONNXTensorElementDataType type,
                size_t bytes, Owned<OrtValue>* value);

  const OrtApi& api_;
  const std::shared_ptr<const Bundle> bundle_;
  const ModelSpec spec_;
  const int max_rows_;
  const std::shared_ptr<operators::Resources> resources_;
  std::vector<int32_t> path_ranges_;  // [max_rows][2]
  std::vector<BoundCache> caches_;    // [layers]
  std::unique_ptr<ort::OperatorSet> operators_;

  // Released in the opposite order: the binding and the session before what they use.
  Owned<OrtEnv> env_;
  Owned<OrtSession> session_;
  Owned<OrtMemoryInfo> memory_;
  Owned<OrtIoBinding> binding_;
};

// The graph runs as it was exported, in this thread: the operators bring their own team. Errors
// come back as statuses, so nothing is logged.
Status OnnxRuntimeModel::configure(OrtSessionOptions* options) {
  SAPWOOD_TRY_ORT(api_, api_.SetIntraOpNumThreads(options, 1));
  SAPWOOD_TRY_ORT(api_, api_.SetInterOpNumThreads(options, 1));
  SAPWOOD_TRY_ORT(api_, api_.SetSessionExecutionMode(options, ORT_SEQUENTIAL));
  SAPWOOD_TRY_ORT(api_, api_.SetSessionGraphOptimizationLevel(options, ORT_DISABLE_ALL));
  SAPWOOD_TRY_ORT(api_, api_.DisableMemPattern(options));  // shapes differ from pass to pass
  SAPWOOD_TRY_ORT(api_, api_.SetSessionLogSeverityLevel(options, ORT_LOGGING_LEVEL_FATAL));
  return ort::take_status(api_, api_.AddCustomOpDomain(options, operators_->domain()));
}

Status OnnxRuntimeModel::open(const std::string& path) {
  Result<std::unique_ptr<ort::OperatorSet>> operators = ort::OperatorSet::create(api_, resources_);
  if (!operators.ok()) return operators.status();
  operators_ = std::move(operators).value();
  SAPWOOD_TRY_ORT(api_, api_.CreateEnv(ORT_LOGGING_LEVEL_FATAL, "sapwood", env_.fill()));
  Owned<OrtSessionOptions> options(api_.ReleaseSessionOptions);
  SAPWOOD_TRY_ORT(api_, api_.CreateSessionOptions(options.fill()));
  SAPWOOD_TRY(configure(options.get()));
  const Status created = ort::take_status(
      api_, api_.CreateSession(env_.get(), path.c_str(), options.get(), session_.fill()));
  if (!created.ok()) return Status(created.code(), path + ": " + created.message());
  SAPWOOD_TRY(check_graph(api_, session_.get(), spec_, path));
  SAPWOOD_TRY_ORT(api_,
                  api_.CreateCpuMemoryInfo(OrtDeviceAllocator, OrtMemTypeDefault, memory_.fill()));
  SAPWOOD_TRY_ORT(api_, api_.CreateIoBinding(session_.get(), binding_.fill()));
  for (int layer = 0; layer < spec_.layers; ++layer) {
    caches_.push_back({cache_name("past_keys", layer), cache_name("past_values", layer),
                       cache_name("present_keys", layer), cache_name("present_values", layer)});
  }
  resources_->layer_workspace(spec_.layer_shape(0), max_rows_, kFirstContext);
  return Status::okay();
}

Status OnnxRuntimeModel::tensor(void* data, std::span<const int64_t> shape,
                                ONNXTensorElementDataType type, size_t bytes,
                                Owned<OrtValue>* value) {
  static int64_t nothing = 0;  // an empty tensor needs an address all the same
  return ort::take_status(
      api_, api_.CreateTensorWithDataAsOrtValue(memory_.get(), bytes == 0 ? &nothing : data, bytes,
                                                shape.data(), shape.size(), type, value->fill()));
}

// Past and present are the same memory, which lets the operators write in place.
Status OnnxRuntimeModel::bind_cache(BoundCache& cache, const KvLayerView& layer) {
  if (layer.keys == cache.keys && layer.layout.slots == cache.slots) return Status::okay();
  const KvLayout& layout = layer.layout;
  const size_t bytes = layout.elements() * sizeof(uint16_t);
  const std::array<int64_t, 4> keys_shape = {layout.kv_heads, layout.slots / kKeyTile,
                                             layout.head_dim, kKeyTile};
  const std::array<int64_t, 3> values_shape = {layout.kv_heads, layout.slots, layout.head_dim};
  Owned<OrtValue> keys(api_.ReleaseValue);
  Owned<OrtValue> values(api_.ReleaseValue);
  SAPWOOD_TRY(tensor(layer.keys, keys_shape, ort::kHalf, bytes, &keys));
  SAPWOOD_TRY(tensor(layer.values, values_shape, ort::kHalf, bytes, &values));
  OrtIoBinding* binding = binding_.get();
  cache.keys = nullptr;  // until all four are bound
  SAPWOOD_TRY_ORT(api_, api_.BindInput(binding, cache.past_keys.c_str(), keys.get()));
  SAPWOOD_TRY_ORT(api_, api_.BindInput(binding, cache.past_values.c_str(), values.get()));
  SAPWOOD_TRY_ORT(api_, api_.BindOutput(binding, cache.present_keys.c_str(), keys.get()));
  SAPWOOD_TRY_ORT(api_, api_.BindOutput(binding, cache.present_values.c_str(), values.get()));
  cache.keys = layer.keys;
  cache.slots = layout.slots;
  return Status::okay();
}

Status OnnxRuntimeModel::bind_indices(const char* name, std::span<const int32_t> values) {
  const std::array<int64_t, 1> shape = {static_cast<int64_t>(values.size())};
  Owned<OrtValue> value(api_.ReleaseValue);
  SAPWOOD_TRY(
      tensor(const_cast<int32_t*>(values.data()), shape, ort::kIndex, values.size_bytes(), &value));
  return ort::take_status(api_, api_.BindInput(binding_.get(), name, value.get()));
}

Status OnnxRuntimeModel::bind_ranges(const RowBatch& batch) {
  for (int row = 0; row < batch.rows(); ++row) {
    path_ranges_[2 * row] = batch.path_begin[row];
    path_ranges_[2 * row + 1] = batch.path_end[row];
  }
  const std::array<int64_t, 2> shape = {batch.rows(), 2};
  Owned<OrtValue> value(api_.ReleaseValue);
  SAPWOOD_TRY(tensor(path_ranges_.data(), shape, ort::kIndex,
                     static_cast<size_t>(batch.rows()) * 2 * sizeof(int32_t), &value));
  return ort::take_status(api_, api_.BindInput(binding_.get(), "path_ranges", value.get()));
}

Status OnnxRuntimeModel::bind_logits(size_t rows, std::span<float> logits) {
  const std::array<int64_t, 2> shape = {static_cast<int64_t>(rows), spec_.vocabulary_size};
  Owned<OrtValue> value(api_.ReleaseValue);
  SAPWOOD_TRY(tensor(logits.data(), shape, ort::kFloat,
                     rows * spec_.vocabulary_size * sizeof(float), &value));
  return ort::take_status(api_, api_.BindOutput(binding_.get(), kLogits, value.get()));
}

Status OnnxRuntimeModel::forward(const RowBatch& batch, KvStore& kv, std::span<float> logits) {
  SAPWOOD_TRY(check_format(*this, kv.format()));
  SAPWOOD_TRY(check_batch(batch, spec_, kv, max_rows_, logits.size()));
  for (int layer = 0; layer < spec_.layers; ++layer) {
    SAPWOOD_TRY(bind_cache(caches_[layer], kv.layer(layer)));
  }
  SAPWOOD_TRY(bind_indices("token_ids", batch.tokens));
  SAPWOOD_TRY(bind_indices("positions", batch.positions));
  SAPWOOD_TRY(bind_indices("slots", batch.slots));
  SAPWOOD_TRY(bind_indices("context_slots", batch.context_slots));
  SAPWOOD_TRY(bind_indices("path_slots", batch.path_slots));
  SAPWOOD_TRY(bind_indices("output_rows", batch.output_rows));
  SAPWOOD_TRY(bind_ranges(batch));
  SAPWOOD_TRY(bind_logits(batch.output_rows.size(), logits));
  resources_->begin_pass(batch.rows());
  SAPWOOD_TRY_ORT(api_, api_.RunWithBinding(session_.get(), nullptr, binding_.get()));
  return resources_->end_pass(spec_.layers);
}

}  // namespace

Result<std::unique_ptr<Model>> open_onnxruntime_model(std::shared_ptr<const Bundle> bundle,
                                                      const OnnxRuntimeOptions& options) {
  SAPWOOD_TRY(check_host_options(options.threads, options.max_rows));
  const Result<std::string> path =
      graph_path(*bundle, bundle->manifest().onnx_file, "ONNX graph", "onnx");
  if (!path.ok()) return path.status();
  const Result<const OrtApi*> api = load_onnxruntime(options.library);
  if (!api.ok()) return api.status();
  auto model = std::make_unique<OnnxRuntimeModel>(*api.value(), std::move(bundle), options);
  SAPWOOD_TRY(model->open(path.value()));
  return std::unique_ptr<Model>(std::move(model));
}

}  // namespace sapwood
