// TokenEmbedding(token_ids[R], table) {format, hidden, vocabulary, scale} -> hidden[R, H]
#include "operators/onnxruntime/operator.h"
#include "operators/onnxruntime/weights.h"

namespace sapwood::ort {
namespace {

enum Input : size_t { kTokenIds, kTable };

constexpr Port kInputs[] = {{"token_ids", kIndex}, {"table", kBytes}};
constexpr Port kOutputs[] = {{"hidden", kFloat}};

struct Settings {
  LinearWeights table;
  float scale = 1.f;
};

Status read_settings(const Attributes& attributes, Settings* settings) {
  LinearFormat format;
  int hidden = 0;
  int vocabulary = 0;
  SAPWOOD_TRY(attributes.linear_format("format", &format));
  SAPWOOD_TRY(attributes.integer("hidden", 1, &hidden));
  SAPWOOD_TRY(attributes.integer("vocabulary", 1, &vocabulary));
  SAPWOOD_TRY(attributes.real("scale", &settings->scale));
  return describe_matrix(format, vocabulary, hidden, &settings->table);
}

class TokenEmbedding final : public Kernel {
 public:
  static Result<std::unique_ptr<Kernel>> create(const KernelSetup& setup) {
    auto kernel = std::make_unique<TokenEmbedding>();
    SAPWOOD_TRY(read_settings(setup.attributes(), &kernel->settings_));
    SAPWOOD_TRY(kernel->table_.prepare(setup, kTable, kernel->settings_.table));
    return std::unique_ptr<Kernel>(std::move(kernel));
  }

  Status compute(KernelCall& call, Resources& resources) override {
    Tensor ids;
    LinearWeights table;
    float* hidden = nullptr;
    SAPWOOD_TRY(call.read(kTokenIds, {kAny}, &ids));
    SAPWOOD_TRY(table_.resolve(call, &table));
    const std::span<const int32_t> tokens(ids.as<int32_t>(), ids.elements());
    for (const int32_t token : tokens) {
      if (token < 0 || token >= table.outputs) {
        return Status(Code::kInvalidArgument, "input 'token_ids' holds " + std::to_string(token) +
                                                  ", but the vocabulary has " +
                                                  std::to_string(table.outputs) + " tokens");
      }
    }
    SAPWOOD_TRY(call.write(0, {ids.shape[0], table.inputs}, &hidden));
    ThreadTeam& team = resources.team();
    team.run(
        [&](int thread) { token_embedding(table, tokens, settings_.scale, hidden, team, thread); });
    return Status::okay();
  }

 private:
  Settings settings_;
  PackedInput table_;
};

Status infer(const Attributes& attributes, ShapeInference& shapes) {
  Settings settings;
  SAPWOOD_TRY(read_settings(attributes, &settings));
  SAPWOOD_TRY(shapes.expect(kTokenIds, {kAny}));
  SAPWOOD_TRY(shapes.expect(kTable, {static_cast<int64_t>(settings.table.bytes())}));
  return shapes.set_output(0, {shapes.dim(kTokenIds, 0), settings.table.inputs});
}

}  // namespace

const OperatorDefinition kTokenEmbedding = {"TokenEmbedding",       kInputs, kOutputs, false,
                                            TokenEmbedding::create, infer};

}  // namespace sapwood::ort
