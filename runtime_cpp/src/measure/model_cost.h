// What a pass over a model costs, by rows and context, whole and by part. The curve that the budget
// of a tree is computed from, and the numbers of `sapwood bench kernels`.
//
//   ModelCost cost(bundle, {.threads = 2});
//   double ms = cost.model(*model, 8, 128);  // one pass of 8 rows over 128 committed tokens
//
// Every call is one measurement; interleave and take medians, since machines drift. More rows or
// context than the constructor was told are refused.
#pragma once

#include <memory>
#include <vector>

#include "base/thread_team.h"
#include "model/bundle.h"
#include "model/model.h"

namespace sapwood {

class ModelCost {
 public:
  ModelCost(std::shared_ptr<const Bundle> bundle, int threads, int max_rows, int max_context,
            KvFormat kv = KvFormat::kFloat16);

  // Milliseconds of all linear layers and the head for `rows` rows, weights from memory.
  Result<double> linears(int rows);

  // Milliseconds of the attention of all layers: a root and rows - 1 children over `context`
  // tokens.
  Result<double> attention(int rows, int context);

  // Milliseconds of one pass of `model` over the same tree, all rows' logits.
  Result<double> model(Model& model, int rows, int context);

  // Milliseconds to fill an empty cache with `tokens` tokens, in chunks of model.max_rows().
  Result<double> prefill(Model& model, int tokens);

  double linear_bytes() const { return linear_bytes_; }            // read by linears()
  double linear_multiplies() const { return linear_multiplies_; }  // int8 multiplies a row
  const std::shared_ptr<ThreadTeam>& team() { return team_; }  // for models measured here to share
  const std::shared_ptr<const Bundle>& bundle() const { return bundle_; }
  std::span<const uint8_t> weights() const;  // what the bandwidth is measured on

 private:
  struct Tree;  // the batch of a root with children
  Status check(int rows, int context) const;
  Tree tree(int rows, int context) const;
  void settle();

  std::shared_ptr<const Bundle> bundle_;
  std::shared_ptr<ThreadTeam> team_;
  int max_rows_;
  std::unique_ptr<KvStore> kv_;
  std::vector<LinearWeights> linears_;
  std::vector<int8_t> codes_;
  std::vector<float> scales_, q_, out_, logits_, scratch_;
  std::vector<int32_t> sums_;
  double linear_bytes_ = 0;
  double linear_multiplies_ = 0;
};

}  // namespace sapwood
