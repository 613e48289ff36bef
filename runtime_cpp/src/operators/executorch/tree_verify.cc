// block_sparse_verify(target_logits[R, V], draft_logits[R, V], tree_mask[R, W],
//   importance_weights[R, W], draw[2]?, verifier, temperature)
//   -> accepted_length[1], new_kv_indices[R - 1], next_token[1]: verify/block_sparse_verify.h
#include <optional>

#include "operators/executorch/operator.h"
#include "operators/for_vocabulary.h"
#include "operators/verify_inputs.h"
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
  operators::set_draw(draw, options);
  return Status::okay();
}

Status compute(Arguments& call, operators::Resources&) {
  Tensor target, draft, mask, weights;
  BlockSparseOptions options;
  SAPWOOD_TRY(read_options(call, &options));
  SAPWOOD_TRY(call.tensor(kTarget, ScalarType::Float, {kAny, kAny}, &target));
  const int64_t rows = target.shape[0];
  SAPWOOD_TRY(call.tensor(kDraft, ScalarType::Float, {rows, target.shape[1]}, &draft));
  SAPWOOD_TRY(call.tensor(kMask, ScalarType::Byte, {rows, kAny}, &mask));
  SAPWOOD_TRY(call.tensor(kWeights, ScalarType::Float, {rows, mask.shape[1]}, &weights));
  BlockSparseTree tree;
  SAPWOOD_TRY(operators::open_tree(target, draft, mask, weights, &tree));
  int32_t* length = nullptr;
  int32_t* indices = nullptr;
  int32_t* next = nullptr;
  SAPWOOD_TRY(call.output(kAcceptedLength, {1}, &length));
  SAPWOOD_TRY(call.output(kNewKvIndices, {rows - 1}, &indices));
  SAPWOOD_TRY(call.output(kNextToken, {1}, &next));
  thread_local operators::ForVocabulary<BlockSparseVerifier> verifier;  // as in tree_prune.cc
  return verifier.of(tree.vocabulary).verify(tree, options, length, indices, next);
}

}  // namespace

const OperatorDefinition kBlockSparseVerify = {"sapwood::block_sparse_verify.out", kNames, compute};

}  // namespace sapwood::executorch
