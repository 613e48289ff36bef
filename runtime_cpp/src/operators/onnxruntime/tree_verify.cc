// BlockSparseVerify(target_logits[R, V], draft_logits[R, V], tree_mask[R, W],
//                   importance_weights[R, W], draw[2]?) {verifier, temperature}
//   -> accepted_length[1], new_kv_indices[R - 1], next_token[1]: verify/block_sparse_verify.h
#include <optional>

#include "operators/for_vocabulary.h"
#include "operators/onnxruntime/operator.h"
#include "operators/verify_inputs.h"
#include "verify/block_sparse_verify.h"

namespace sapwood::ort {
namespace {

enum Input : size_t { kTarget, kDraft, kMask, kWeights, kDraw };

constexpr Port kInputs[] = {{"target_logits", kFloat},
                            {"draft_logits", kFloat},
                            {"tree_mask", kBytes},
                            {"importance_weights", kFloat},
                            {"draw", kIndex, true}};
constexpr Port kOutputs[] = {
    {"accepted_length", kIndex}, {"new_kv_indices", kIndex}, {"next_token", kIndex}};

Status read_settings(const Attributes& attributes, BlockSparseOptions* options) {
  std::string name;
  SAPWOOD_TRY(attributes.text("verifier", &name));
  SAPWOOD_TRY(attributes.real("temperature", &options->temperature));
  const std::optional<Verifier> verifier = parse_verifier(name);
  if (!verifier) {
    return Status(Code::kInvalidArgument,
                  "attribute 'verifier' is '" + name +
                      "', not 'target_draw', 'rejection', 'block' or 'traversal'");
  }
  options->verifier = *verifier;
  return SamplingOptions{.temperature = options->temperature}.check();
}

class BlockSparseVerify final : public Kernel {
 public:
  static Result<std::unique_ptr<Kernel>> create(const KernelSetup& setup) {
    auto kernel = std::make_unique<BlockSparseVerify>();
    SAPWOOD_TRY(read_settings(setup.attributes(), &kernel->options_));
    kernel->has_draw_ = setup.has_input(kDraw);
    return std::unique_ptr<Kernel>(std::move(kernel));
  }

  Status compute(KernelCall& call, Resources&) override {
    Tensor target, draft, mask, weights;
    SAPWOOD_TRY(call.read(kTarget, {kAny, kAny}, &target));
    SAPWOOD_TRY(call.read(kDraft, {target.shape[0], target.shape[1]}, &draft));
    SAPWOOD_TRY(call.read(kMask, {target.shape[0], kAny}, &mask));
    SAPWOOD_TRY(call.read(kWeights, {mask.shape[0], mask.shape[1]}, &weights));
    BlockSparseTree tree;
    SAPWOOD_TRY(operators::open_tree(target, draft, mask, weights, &tree));
    BlockSparseOptions options = options_;
    if (has_draw_) {
      Tensor draw;
      SAPWOOD_TRY(call.read(kDraw, {2}, &draw));
      operators::set_draw(draw, &options);
    }
    int32_t* length = nullptr;
    int32_t* indices = nullptr;
    int32_t* next = nullptr;
    SAPWOOD_TRY(call.write(0, {1}, &length));
    SAPWOOD_TRY(call.write(1, {tree.rows - 1}, &indices));
    SAPWOOD_TRY(call.write(2, {1}, &next));
    return verifier_.of(tree.vocabulary).verify(tree, options, length, indices, next);
  }

 private:
  BlockSparseOptions options_;
  bool has_draw_ = false;
  operators::ForVocabulary<BlockSparseVerifier> verifier_;
};

Status infer(const Attributes& attributes, ShapeInference& shapes) {
  BlockSparseOptions options;
  SAPWOOD_TRY(read_settings(attributes, &options));
  SAPWOOD_TRY(shapes.expect(kTarget, {kAny, kAny}));
  const Dim rows = shapes.dim(kTarget, 0);
  SAPWOOD_TRY(shapes.expect(kDraft, {rows.size, shapes.dim(kTarget, 1).size}));
  SAPWOOD_TRY(shapes.expect(kMask, {rows.size, kAny}));
  SAPWOOD_TRY(shapes.expect(kWeights, {rows.size, shapes.dim(kMask, 1).size}));
  if (shapes.has_shape(kDraw)) SAPWOOD_TRY(shapes.expect(kDraw, {2}));
  Dim nodes;
  if (rows.size != kAny) nodes = rows.size - 1;
  SAPWOOD_TRY(shapes.set_output(0, {Dim(1)}));
  SAPWOOD_TRY(shapes.set_output(1, {nodes}));
  return shapes.set_output(2, {Dim(1)});
}

}  // namespace

const OperatorDefinition kBlockSparseVerify = {"BlockSparseVerify",       kInputs, kOutputs, false,
                                               BlockSparseVerify::create, infer};

}  // namespace sapwood::ort
