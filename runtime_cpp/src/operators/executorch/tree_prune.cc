// dynamic_tree_prune(logits[R, V], entropy_threshold[1], uncertainty[R]?, max_tree_width,
//   beta_base, rho_min, rho_max, entropy_low)
//   -> kept_indices[R, W], importance_weights[R, W], tree_mask[R, W]: tree/dynamic_tree_prune.h
#include "operators/executorch/operator.h"
#include "operators/for_vocabulary.h"
#include "tree/dynamic_tree_prune.h"

namespace sapwood::executorch {
namespace {

enum : size_t {
  kLogits,
  kThreshold,
  kUncertainty,
  kMaxTreeWidth,
  kBetaBase,
  kRhoMin,
  kRhoMax,
  kEntropyLow,
  kKeptIndices,
  kImportanceWeights,
  kTreeMask,
};
constexpr const char* kNames[] = {
    "logits",  "entropy_threshold", "uncertainty",  "max_tree_width",     "beta_base", "rho_min",
    "rho_max", "entropy_low",       "kept_indices", "importance_weights", "tree_mask"};

Status read_options(const Arguments& call, ControllerOptions* options) {
  SAPWOOD_TRY(call.integer(kMaxTreeWidth, 1, &options->max_tree_width));
  SAPWOOD_TRY(call.real(kBetaBase, &options->beta_base));
  SAPWOOD_TRY(call.real(kRhoMin, &options->rho_min));
  SAPWOOD_TRY(call.real(kRhoMax, &options->rho_max));
  return call.real(kEntropyLow, &options->entropy_low);
}

Status compute(Arguments& call, operators::Resources&) {
  Tensor logits, threshold, uncertainty;
  ControllerOptions options;
  int32_t* kept = nullptr;
  float* weights = nullptr;
  uint8_t* mask = nullptr;
  SAPWOOD_TRY(read_options(call, &options));
  SAPWOOD_TRY(call.tensor(kLogits, ScalarType::Float, {kAny, kAny}, &logits));
  SAPWOOD_TRY(call.tensor(kThreshold, ScalarType::Float, {1}, &threshold));
  options.entropy_high = threshold.as<float>()[0];
  SAPWOOD_TRY(options.check());
  const int rows = static_cast<int>(logits.shape[0]);
  const int vocabulary = static_cast<int>(logits.shape[1]);
  std::span<const float> said;
  if (call.has(kUncertainty)) {
    SAPWOOD_TRY(call.tensor(kUncertainty, ScalarType::Float, {rows}, &uncertainty));
    said = {uncertainty.as<float>(), static_cast<size_t>(rows)};
  }
  const int64_t width = options.max_tree_width;
  SAPWOOD_TRY(call.output(kKeptIndices, {rows, width}, &kept));
  SAPWOOD_TRY(call.output(kImportanceWeights, {rows, width}, &weights));
  SAPWOOD_TRY(call.output(kTreeMask, {rows, width}, &mask));
  // Kept between calls, which of one thread come one after the other.
  thread_local operators::ForVocabulary<CandidateSelector> selector;
  return dynamic_tree_prune({logits.as<float>(), static_cast<size_t>(logits.elements())}, rows,
                            vocabulary, said, options, selector.of(vocabulary), kept, weights,
                            mask);
}

}  // namespace

const OperatorDefinition kDynamicTreePrune = {"sapwood::dynamic_tree_prune.out", kNames, compute};

}  // namespace sapwood::executorch
