// DecoderLayer(hidden, rotary, slots, context_slots, path_slots, path_ranges, past_keys,
// past_values,
//              attention_norm, mlp_norm, qkv, output, gate_up, down, qkv_bias?, q_norm?, k_norm?,
//              attention_post_norm?, mlp_post_norm?)
//   {heads, kv_heads, head_dim, intermediate, norm_epsilon, attention_scale, window, activation,
//    qkv_format, output_format, gate_up_format, down_format}
//   -> hidden, present_keys, present_values
#include <array>

#include "operators/layer.h"
#include "operators/onnxruntime/cache_inputs.h"
#include "operators/onnxruntime/operator.h"
#include "operators/onnxruntime/weights.h"

namespace sapwood::ort {
namespace {

constexpr CachePorts kCache{operators::kLayerCache, 1};
constexpr Port kInputs[] = {{"hidden", kFloat},
                            {"rotary", kFloat},
                            {"slots", kIndex},
                            {"context_slots", kIndex},
                            {"path_slots", kIndex},
                            {"path_ranges", kIndex},
                            {"past_keys", kHalf},
                            {"past_values", kHalf},
                            {"attention_norm", kFloat},
                            {"mlp_norm", kFloat},
                            {"qkv", kBytes},
                            {"output", kBytes},
                            {"gate_up", kBytes},
                            {"down", kBytes},
                            {"qkv_bias", kFloat, true},
                            {"q_norm", kFloat, true},
                            {"k_norm", kFloat, true},
                            {"attention_post_norm", kFloat, true},
                            {"mlp_post_norm", kFloat, true}};
constexpr Port kOutputs[] = {
    {"hidden", kFloat}, {"present_keys", kHalf}, {"present_values", kHalf}};

constexpr const char* kFormats[] = {"qkv_format", "output_format", "gate_up_format", "down_format"};

// The layer's shape (all but its width, which the norms' length says) and the matrices' formats.
struct Settings {
  LayerShape shape;
  std::array<LinearFormat, operators::kLayerMatrices> formats;
};

Status read_settings(const Attributes& attributes, Settings* settings) {
  AttentionShape& attention = settings->shape.attention;
  SAPWOOD_TRY(attributes.integer("heads", 1, &attention.heads));
  SAPWOOD_TRY(attributes.integer("kv_heads", 1, &attention.kv_heads));
  SAPWOOD_TRY(attributes.integer("head_dim", 1, &attention.head_dim));
  SAPWOOD_TRY(attributes.real("attention_scale", &attention.scale));
  SAPWOOD_TRY(attributes.integer("window", 0, &attention.window));
  SAPWOOD_TRY(attributes.integer("intermediate", 1, &settings->shape.intermediate));
  SAPWOOD_TRY(attributes.real("norm_epsilon", &settings->shape.norm_epsilon));
  SAPWOOD_TRY(attributes.activation("activation", &settings->shape.activation));
  for (size_t matrix = 0; matrix < operators::kLayerMatrices; ++matrix) {
    SAPWOOD_TRY(attributes.linear_format(kFormats[matrix], &settings->formats[matrix]));
  }
  return operators::check_layer(settings->shape);
}

class DecoderLayer final : public Kernel {
 public:
  static Result<std::unique_ptr<Kernel>> create(const KernelSetup& setup) {
    auto kernel = std::make_unique<DecoderLayer>();
    SAPWOOD_TRY(kernel->prepare(setup));
    return std::unique_ptr<Kernel>(std::move(kernel));
  }

  Status compute(KernelCall& call, Resources& resources) override {
    const AttentionShape& attention = settings_.shape.attention;
    Tensor hidden, rotary;
    CacheCall cache;
    float* out = nullptr;
    SAPWOOD_TRY(call.read(operators::kLayerHidden, {kAny, settings_.shape.hidden}, &hidden));
    const int rows = static_cast<int>(hidden.shape[0]);
    SAPWOOD_TRY(call.read(operators::kLayerRotary, {rows, attention.head_dim}, &rotary));
    SAPWOOD_TRY(
        open_cache(call, kCache, rows, attention.kv_heads, attention.head_dim, resources, &cache));
    SAPWOOD_TRY(call.write(0, hidden.shape, &out));
    operators::run_layer(settings_.shape, weights_, hidden, rotary, cache, out, resources);
    return Status::okay();
  }

 private:
  Status prepare(const KernelSetup& setup) {
    SAPWOOD_TRY(read_settings(setup.attributes(), &settings_));
    const float* norm = nullptr;  // its length is the model's width
    SAPWOOD_TRY(norm_input(setup, operators::kAttentionNorm, &norm, &settings_.shape.hidden));
    return operators::read_layer_weights(
        settings_.shape,
        [&](size_t input, int length, const float** data) {
          return vector_input(setup, input, length, data);
        },
        [&](size_t input, int outputs, int inputs, LinearWeights* matrix) {
          return packed_input(setup, input, settings_.formats[input - operators::kQkv], outputs,
                              inputs, matrix);
        },
        &weights_);
  }

  Settings settings_;
  LayerWeights weights_;
};

Status infer(const Attributes& attributes, ShapeInference& shapes) {
  Settings settings;
  SAPWOOD_TRY(read_settings(attributes, &settings));
  const AttentionShape& attention = settings.shape.attention;
  SAPWOOD_TRY(shapes.expect(operators::kLayerHidden, {kAny, kAny}));
  const Dim rows = shapes.dim(operators::kLayerHidden, 0);
  const int64_t hidden = shapes.dim(operators::kLayerHidden, 1).size;
  SAPWOOD_TRY(shapes.expect(operators::kLayerRotary, {rows.size, attention.head_dim}));
  SAPWOOD_TRY(shapes.expect(operators::kAttentionNorm, {hidden}));
  SAPWOOD_TRY(shapes.expect(operators::kMlpNorm, {hidden}));
  SAPWOOD_TRY(infer_cache(shapes, kCache, rows, attention.kv_heads, attention.head_dim));
  return shapes.copy_shape(operators::kLayerHidden, 0);
}

}  // namespace

const OperatorDefinition kDecoderLayer = {"DecoderLayer",       kInputs, kOutputs, true,
                                          DecoderLayer::create, infer};

}  // namespace sapwood::ort
