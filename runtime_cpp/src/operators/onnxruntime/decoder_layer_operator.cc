// DecoderLayer(hidden, rotary, slots, context_slots, path_slots, path_ranges, past_keys,
// past_values,
//              attention_norm, mlp_norm, qkv, output, gate_up, down, qkv_bias?, q_norm?, k_norm?,
//              attention_post_norm?, mlp_post_norm?)
//   {heads, kv_heads, head_dim, intermediate, norm_epsilon, attention_scale, window, activation,
//    qkv_format, output_format, gate_up_format, down_format}
//   -> hidden, present_keys, present_values
#include <cstring>

#include "operators/onnxruntime/cache_inputs.h"
#include "operators/onnxruntime/operator.h"
#include "operators/onnxruntime/weights.h"

namespace sapwood::ort {
namespace {

enum Input : size_t {
  kHidden,
  kRotary,
  kAttentionNorm = 8,
  kMlpNorm,
  kQkv,
  kOutput,
  kGateUp,
  kDown,
  kQkvBias,
  kQNorm,
  kKNorm,
  kAttentionPostNorm,
  kMlpPostNorm,
};

constexpr CachePorts kCache{2, 1};
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

// The layer's shape (all but its width, which the norms' length says) and the matrices' formats.
struct Settings {
  LayerShape shape;
  LinearFormat qkv, output, gate_up, down;
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
  SAPWOOD_TRY(attributes.linear_format("qkv_format", &settings->qkv));
  SAPWOOD_TRY(attributes.linear_format("output_format", &settings->output));
  SAPWOOD_TRY(attributes.linear_format("gate_up_format", &settings->gate_up));
  SAPWOOD_TRY(attributes.linear_format("down_format", &settings->down));
  return check_heads(attention);
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
    Tensor hidden_in, rotary;
    CacheCall cache;
    float* hidden = nullptr;
    SAPWOOD_TRY(call.read(kHidden, {kAny, settings_.shape.hidden}, &hidden_in));
    const int rows = static_cast<int>(hidden_in.shape[0]);
    SAPWOOD_TRY(call.read(kRotary, {rows, attention.head_dim}, &rotary));
    SAPWOOD_TRY(
        open_cache(call, kCache, rows, attention.kv_heads, attention.head_dim, resources, &cache));
    SAPWOOD_TRY(call.write(0, hidden_in.shape, &hidden));
    if (hidden != hidden_in.data) {
      std::memcpy(hidden, hidden_in.data, hidden_in.elements() * sizeof(float));
    }
    if (rows == 0) return Status::okay();
    LayerWorkspace& workspace =
        resources.layer_workspace(settings_.shape, rows, cache.visible_tokens);
    ThreadTeam& team = resources.team();
    team.run([&](int thread) {
      decoder_layer(settings_.shape, weights_, cache.batch, rotary.as<float>(), cache.kv, hidden,
                    workspace, team, thread);
    });
    return Status::okay();
  }

 private:
  Status prepare(const KernelSetup& setup) {
    SAPWOOD_TRY(read_settings(setup.attributes(), &settings_));
    LayerShape& shape = settings_.shape;
    LayerWeights& w = weights_;
    SAPWOOD_TRY(norm_input(setup, kAttentionNorm, &w.attention_norm, &shape.hidden));
    const int hidden = shape.hidden;
    const int head_dim = shape.attention.head_dim;
    const int attended = shape.attention.heads * head_dim;
    const int qkv_width = attended + 2 * shape.attention.kv_heads * head_dim;
    SAPWOOD_TRY(vector_input(setup, kMlpNorm, hidden, &w.mlp_norm));
    SAPWOOD_TRY(vector_input(setup, kQkvBias, qkv_width, &w.qkv_bias));
    SAPWOOD_TRY(vector_input(setup, kQNorm, head_dim, &w.q_norm));
    SAPWOOD_TRY(vector_input(setup, kKNorm, head_dim, &w.k_norm));
    SAPWOOD_TRY(vector_input(setup, kAttentionPostNorm, hidden, &w.attention_post_norm));
    SAPWOOD_TRY(vector_input(setup, kMlpPostNorm, hidden, &w.mlp_post_norm));
    SAPWOOD_TRY(packed_input(setup, kQkv, settings_.qkv, qkv_width, hidden, &w.qkv));
    SAPWOOD_TRY(packed_input(setup, kOutput, settings_.output, hidden, attended, &w.output));
    SAPWOOD_TRY(
        gate_up_input(setup, kGateUp, settings_.gate_up, shape.intermediate, hidden, &w.gate_up));
    return packed_input(setup, kDown, settings_.down, hidden, shape.intermediate, &w.down);
  }

  Settings settings_;
  LayerWeights weights_;
};

Status infer(const Attributes& attributes, ShapeInference& shapes) {
  Settings settings;
  SAPWOOD_TRY(read_settings(attributes, &settings));
  const AttentionShape& attention = settings.shape.attention;
  SAPWOOD_TRY(shapes.expect(kHidden, {kAny, kAny}));
  const Dim rows = shapes.dim(kHidden, 0);
  const int64_t hidden = shapes.dim(kHidden, 1).size;
  SAPWOOD_TRY(shapes.expect(kRotary, {rows.size, attention.head_dim}));
  SAPWOOD_TRY(shapes.expect(kAttentionNorm, {hidden}));
  SAPWOOD_TRY(shapes.expect(kMlpNorm, {hidden}));
  SAPWOOD_TRY(infer_cache(shapes, kCache, rows, attention.kv_heads, attention.head_dim));
  return shapes.copy_shape(kHidden, 0);
}

}  // namespace

const OperatorDefinition kDecoderLayer = {"DecoderLayer",       kInputs, kOutputs, true,
                                          DecoderLayer::create, infer};

}  // namespace sapwood::ort
