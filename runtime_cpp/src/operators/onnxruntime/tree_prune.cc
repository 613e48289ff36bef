// DynamicTreePrune(logits[R, V], entropy_threshold[1], uncertainty[R]?)
//   {max_tree_width, beta_base, rho_min, rho_max, entropy_low}
//   -> kept_indices[R, W], importance_weights[R, W], tree_mask[R, W]: tree/dynamic_tree_prune.h
#include "operators/for_vocabulary.h"
#include "operators/onnxruntime/operator.h"
#include "tree/dynamic_tree_prune.h"

namespace sapwood::ort {
namespace {

enum Input : size_t { kLogits, kThreshold, kUncertainty };

constexpr Port kInputs[] = {
    {"logits", kFloat}, {"entropy_threshold", kFloat}, {"uncertainty", kFloat, true}};
constexpr Port kOutputs[] = {
    {"kept_indices", kIndex}, {"importance_weights", kFloat}, {"tree_mask", kBytes}};

Status read_settings(const Attributes& attributes, ControllerOptions* options) {
  SAPWOOD_TRY(attributes.integer("max_tree_width", 1, &options->max_tree_width));
  SAPWOOD_TRY(attributes.real("beta_base", &options->beta_base));
  SAPWOOD_TRY(attributes.real("rho_min", &options->rho_min));
  SAPWOOD_TRY(attributes.real("rho_max", &options->rho_max));
  SAPWOOD_TRY(attributes.real("entropy_low", &options->entropy_low));
  options->entropy_high = options->entropy_low + 1.f;  // an input, checked when it comes
  return options->check();
}

class DynamicTreePrune final : public Kernel {
 public:
  static Result<std::unique_ptr<Kernel>> create(const KernelSetup& setup) {
    auto kernel = std::make_unique<DynamicTreePrune>();
    SAPWOOD_TRY(read_settings(setup.attributes(), &kernel->options_));
    kernel->has_uncertainty_ = setup.has_input(kUncertainty);
    return std::unique_ptr<Kernel>(std::move(kernel));
  }

  Status compute(KernelCall& call, Resources&) override {
    Tensor logits, threshold, uncertainty;
    int32_t* kept = nullptr;
    float* weights = nullptr;
    uint8_t* mask = nullptr;
    SAPWOOD_TRY(call.read(kLogits, {kAny, kAny}, &logits));
    SAPWOOD_TRY(call.read(kThreshold, {1}, &threshold));
    std::span<const float> said;
    if (has_uncertainty_) {
      SAPWOOD_TRY(call.read(kUncertainty, {logits.shape[0]}, &uncertainty));
      said = {uncertainty.as<float>(), static_cast<size_t>(uncertainty.elements())};
    }
    ControllerOptions options = options_;
    options.entropy_high = threshold.as<float>()[0];
    if (!(options.entropy_high > options.entropy_low)) {
      return Status(Code::kInvalidArgument, "input 'entropy_threshold' is " +
                                                std::to_string(options.entropy_high) +
                                                "; it must be above the attribute entropy_low, " +
                                                std::to_string(options.entropy_low));
    }
    const int rows = static_cast<int>(logits.shape[0]);
    const int vocabulary = static_cast<int>(logits.shape[1]);
    const int64_t width = options.max_tree_width;
    SAPWOOD_TRY(call.write(0, {rows, width}, &kept));
    SAPWOOD_TRY(call.write(1, {rows, width}, &weights));
    SAPWOOD_TRY(call.write(2, {rows, width}, &mask));
    return dynamic_tree_prune({logits.as<float>(), static_cast<size_t>(logits.elements())}, rows,
                              vocabulary, said, options, selector_.of(vocabulary), kept, weights,
                              mask);
  }

 private:
  ControllerOptions options_;
  bool has_uncertainty_ = false;
  operators::ForVocabulary<CandidateSelector> selector_;
};

Status infer(const Attributes& attributes, ShapeInference& shapes) {
  ControllerOptions options;
  SAPWOOD_TRY(read_settings(attributes, &options));
  SAPWOOD_TRY(shapes.expect(kLogits, {kAny, kAny}));
  SAPWOOD_TRY(shapes.expect(kThreshold, {1}));
  const Dim rows = shapes.dim(kLogits, 0);
  if (shapes.has_shape(kUncertainty)) SAPWOOD_TRY(shapes.expect(kUncertainty, {rows.size}));
  for (size_t output = 0; output < 3; ++output) {
    SAPWOOD_TRY(shapes.set_output(output, {rows, options.max_tree_width}));
  }
  return Status::okay();
}

}  // namespace

const OperatorDefinition kDynamicTreePrune = {"DynamicTreePrune",       kInputs, kOutputs, false,
                                              DynamicTreePrune::create, infer};

}  // namespace sapwood::ort
