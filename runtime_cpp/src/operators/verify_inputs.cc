#include "operators/verify_inputs.h"

namespace sapwood::operators {
namespace {

std::span<const float> floats(const Tensor& tensor) {
  return {tensor.as<float>(), static_cast<size_t>(tensor.elements())};
}

}  // namespace

Status open_tree(const Tensor& target, const Tensor& draft, const Tensor& mask,
                 const Tensor& weights, BlockSparseTree* tree) {
  if (target.shape[0] < 1 || target.shape[1] < 1) {
    return Status(Code::kInvalidArgument, "input 'target_logits' has shape " +
                                              describe_shape(target.shape) +
                                              "; it needs the root's row");
  }
  tree->rows = static_cast<int>(target.shape[0]);
  tree->vocabulary = static_cast<int>(target.shape[1]);
  tree->width = static_cast<int>(mask.shape[1]);
  tree->target_logits = floats(target);
  tree->draft_logits = floats(draft);
  tree->tree_mask = {mask.as<uint8_t>(), static_cast<size_t>(mask.elements())};
  tree->importance_weights = floats(weights);
  return Status::okay();
}

void set_draw(const Tensor& draw, BlockSparseOptions* options) {
  options->seed = static_cast<uint32_t>(draw.as<int32_t>()[0]);
  options->position = static_cast<uint32_t>(draw.as<int32_t>()[1]);
}

}  // namespace sapwood::operators
