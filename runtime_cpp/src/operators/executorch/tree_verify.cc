// block_sparse_verify(target_logits[R, V], draft_logits[R, V], tree_mask[R, W],
//   importance_weights[R, W], draw[2]?, verifier, temperature)
//   -> accepted_length[1], new_kv_indices[R - 1], next_token[1]: verify/block_sparse_verify.h
#include <optional>

#include "operators/executorch/operator.h"
#include "verify/block_sparse_verify.h"

namespace sapwood::executorch {
namespace {

enum : size_t {
  kTarget,
  kDraft,
  kMask,
  kWeights,
  kDraw,
  kVerifier,
  kTemperature,
  kAcceptedLength,
  kNewKvIndices,
  kNextToken,
};
constexpr const char* kNames[] = {
    "target_logits", "draft_logits", "tree_mask",       "importance_weights", "draw",
    "verifier",      "temperature",  "accepted_length", "new_kv_indices",     "next_token"};

// As tree_prune.cc keeps its selector.
BlockSparseVerifier& verifier_of(int vocabulary) {
  thread_local std::optional<BlockSparseVerifier> verifier;
  thread_local int made_for = 0;
  if (made_for != vocabulary) {
    verifier.emplace(vocabulary);
    made_for = vocabulary;
  }
  return *verifier;
}

Status read_options(Arguments& call, BlockSparseOptions* options) {
  std::string_view name;
  SAPWOOD_TRY(call.text(kVerifier, &name));
  const std::optional<Verifier> verifier = parse_verifier(name);
  if (!verifier) {
    return Status(Code::kInvalidArgument,
                  "'verifier' is '" + std::string(name) +
                      "', not 'target_draw', 'rejection', 'block' or 'traversal'");
  }
  options->verifier = *verifier;
  SAPWOOD_TRY(call.real(kTemperature, &options->temperature));
  SAPWOOD_TRY(SamplingOptions{.temperature = options->temperature}.check());
  if (!call.has(kDraw)) return Status::okay();
  Tensor draw;
  SAPWOOD_TRY(call.tensor(kDraw, ScalarType::Int, {2}, &draw));
  options->seed = static_cast<uint32_t>(draw.as<int32_t>()[0]);
  options->position = static_cast<uint32_t>(draw.as<int32_t>()[1]);
  return Status::okay();
}

Status compute(Arguments& call, operators::Resources&) {
  Tensor target, draft, mask, weights;
  BlockSparseOptions options;
  SAPWOOD_TRY(read_options(call, &options));
  SAPWOOD_TRY(call.tensor(kTarget, ScalarType::Float, {kAny, kAny}, &target));
  const int64_t rows = target.shape[0];
  if (rows < 1 || target.shape[1] < 1) {
    return Status(Code::kInvalidArgument, "'target_logits' has shape " +
                                              operators::describe_shape(target.shape) +
                                              "; it needs the root's row");
  }
  SAPWOOD_TRY(call.tensor(kDraft, ScalarType::Float, {rows, target.shape[1]}, &draft));
  SAPWOOD_TRY(call.tensor(kMask, ScalarType::Byte, {rows, kAny}, &mask));
  SAPWOOD_TRY(call.tensor(kWeights, ScalarType::Float, {rows, mask.shape[1]}, &weights));
  const auto floats = [](const Tensor& t) {
    return std::span(t.as<float>(), static_cast<size_t>(t.elements()));
  };
  BlockSparseTree tree;
  tree.rows = static_cast<int>(rows);
  tree.vocabulary = static_cast<int>(target.shape[1]);
  tree.width = static_cast<int>(mask.shape[1]);
  tree.target_logits = floats(target);
  tree.draft_logits = floats(draft);
  tree.tree_mask = {mask.as<uint8_t>(), static_cast<size_t>(mask.elements())};
  tree.importance_weights = floats(weights);
  int32_t* length = nullptr;
  int32_t* indices = nullptr;
  int32_t* next = nullptr;
  SAPWOOD_TRY(call.output(kAcceptedLength, {1}, &length));
  SAPWOOD_TRY(call.output(kNewKvIndices, {rows - 1}, &indices));
  SAPWOOD_TRY(call.output(kNextToken, {1}, &next));
  return verifier_of(tree.vocabulary).verify(tree, options, length, indices, next);
}

}  // namespace

const OperatorDefinition kBlockSparseVerify = {"sapwood::block_sparse_verify.out", kNames, compute};

}  // namespace sapwood::executorch
