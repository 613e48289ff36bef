// OutputHead(hidden[R, H], output_rows[O], norm[H], head) {format, norm_epsilon, vocabulary}
//   -> logits[O, V]: the final norm and the head, for the rows asked for only
#include "operators/cache_arguments.h"
#include "operators/onnxruntime/operator.h"
#include "operators/onnxruntime/weights.h"

namespace sapwood::ort {
namespace {

enum Input : size_t { kHidden, kOutputRows, kNorm, kHead };

constexpr Port kInputs[] = {
    {"hidden", kFloat}, {"output_rows", kIndex}, {"norm", kFloat}, {"head", kBytes}};
constexpr Port kOutputs[] = {{"logits", kFloat}};

struct Settings {
  LinearFormat format;
  int vocabulary = 0;
  float norm_epsilon = 0.f;
};

Status read_settings(const Attributes& attributes, Settings* settings) {
  SAPWOOD_TRY(attributes.linear_format("format", &settings->format));
  SAPWOOD_TRY(attributes.real("norm_epsilon", &settings->norm_epsilon));
  return attributes.integer("vocabulary", 1, &settings->vocabulary);
}

class OutputHead final : public Kernel {
 public:
  static Result<std::unique_ptr<Kernel>> create(const KernelSetup& setup) {
    auto kernel = std::make_unique<OutputHead>();
    SAPWOOD_TRY(kernel->prepare(setup));
    return std::unique_ptr<Kernel>(std::move(kernel));
  }

  Status compute(KernelCall& call, Resources& resources) override {
    Tensor hidden, rows;
    float* logits = nullptr;
    SAPWOOD_TRY(call.read(kHidden, {kAny, width_}, &hidden));
    SAPWOOD_TRY(call.read(kOutputRows, {kAny}, &rows));
    const std::span<const int32_t> output_rows = rows.indices();
    SAPWOOD_TRY(operators::check_output_rows(output_rows, hidden.shape[0]));
    const int count = static_cast<int>(output_rows.size());
    SAPWOOD_TRY(call.write(0, {count, settings_.vocabulary}, &logits));
    if (count == 0) return Status::okay();
    LayerWorkspace& workspace = resources.head_workspace(width_, count);
    ThreadTeam& team = resources.team();
    team.run([&](int thread) {
      output_head(norm_, settings_.norm_epsilon, head_, hidden.as<float>(), width_, output_rows,
                  logits, workspace, team, thread);
    });
    return Status::okay();
  }

 private:
  Status prepare(const KernelSetup& setup) {
    SAPWOOD_TRY(read_settings(setup.attributes(), &settings_));
    SAPWOOD_TRY(norm_input(setup, kNorm, &norm_, &width_));
    return packed_input(setup, kHead, settings_.format, settings_.vocabulary, width_, &head_);
  }

  Settings settings_;
  int width_ = 0;
  const float* norm_ = nullptr;
  LinearWeights head_;
};

Status infer(const Attributes& attributes, ShapeInference& shapes) {
  Settings settings;
  SAPWOOD_TRY(read_settings(attributes, &settings));
  SAPWOOD_TRY(shapes.expect(kHidden, {kAny, kAny}));
  SAPWOOD_TRY(shapes.expect(kOutputRows, {kAny}));
  SAPWOOD_TRY(shapes.expect(kNorm, {shapes.dim(kHidden, 1).size}));
  return shapes.set_output(0, {shapes.dim(kOutputRows, 0), settings.vocabulary});
}

}  // namespace

const OperatorDefinition kOutputHead = {"OutputHead",       kInputs, kOutputs, false,
                                        OutputHead::create, infer};

}  // namespace sapwood::ort
