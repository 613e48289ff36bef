// TokenEmbedding(token_ids[R], table) {format, hidden, vocabulary, scale} -> hidden[R, H]
#include "operators/cache_arguments.h"
#include "operators/onnxruntime/operator.h"
#include "operators/onnxruntime/weights.h"

namespace sapwood::ort {
namespace {

enum Input : size_t { kTokenIds, kTable };

constexpr Port kInputs[] = {{"token_ids", kIndex}, {"table", kBytes}};
constexpr Port kOutputs[] = {{"hidden", kFloat}};

struct Settings {
  LinearFormat format;
  int hidden = 0;
  int vocabulary = 0;
  float scale = 1.f;
};

Status read_settings(const Attributes& attributes, Settings* settings) {
  SAPWOOD_TRY(attributes.linear_format("format", &settings->format));
  SAPWOOD_TRY(attributes.integer("hidden", 1, &settings->hidden));
  SAPWOOD_TRY(attributes.integer("vocabulary", 1, &settings->vocabulary));
  return attributes.real("scale", &settings->scale);
}

class TokenEmbedding final : public Kernel {
 public:
  static Result<std::unique_ptr<Kernel>> create(const KernelSetup& setup) {
    auto kernel = std::make_unique<TokenEmbedding>();
    Settings& settings = kernel->settings_;
    SAPWOOD_TRY(read_settings(setup.attributes(), &settings));
    SAPWOOD_TRY(packed_input(setup, kTable, settings.format, settings.vocabulary, settings.hidden,
                             &kernel->table_));
    return std::unique_ptr<Kernel>(std::move(kernel));
  }

  Status compute(KernelCall& call, Resources& resources) override {
    Tensor ids;
    float* hidden = nullptr;
    SAPWOOD_TRY(call.read(kTokenIds, {kAny}, &ids));
    const std::span<const int32_t> tokens = ids.indices();
    SAPWOOD_TRY(operators::check_tokens(tokens, table_.outputs));
    SAPWOOD_TRY(call.write(0, {ids.shape[0], table_.inputs}, &hidden));
    ThreadTeam& team = resources.team();
    team.run([&](int thread) {
      token_embedding(table_, tokens, settings_.scale, hidden, team, thread);
    });
    resources.show(hidden, static_cast<int>(ids.shape[0]));
    return Status::okay();
  }

 private:
  Settings settings_;
  LinearWeights table_;
};

Status infer(const Attributes& attributes, ShapeInference& shapes) {
  Settings settings;
  SAPWOOD_TRY(read_settings(attributes, &settings));
  SAPWOOD_TRY(shapes.expect(kTokenIds, {kAny}));
  return shapes.set_output(0, {shapes.dim(kTokenIds, 0), settings.hidden});
}

}  // namespace

const OperatorDefinition kTokenEmbedding = {"TokenEmbedding",       kInputs, kOutputs, false,
                                            TokenEmbedding::create, infer};

}  // namespace sapwood::ort
