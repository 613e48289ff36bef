// Which candidates of a node may become its children: the controller and its baselines behind one
// interface.
//
// A rule sees draft-side data only, and decides before any child is drawn, so it may be used with
// every verifier: the proposal is what it keeps, renormalised.
#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "base/status.h"
#include "tree/candidates.h"
#include "tree/controller.h"
#include "tree/draft_tree.h"
#include "tree/tree_shape.h"

namespace sapwood {

class Pruning {
 public:
  virtual ~Pruning() = default;
  virtual std::string_view name() const = 0;

  // Writes the ranks of the candidates of `node` (kRoot included) that stay, ascending, and returns
  // how many; 0: the node gets no children. kept.size() >= candidates.size().
  virtual int select(const DraftTree& tree, int node, const Candidates& candidates,
                     std::span<int> kept) const = 0;
};

// The controller: soft truncation at the prune ratio of the node's uncertainty, by a trained head
// where the candidates bring its word, else by their entropy.
class SoftPruning final : public Pruning {
 public:
  explicit SoftPruning(const ControllerOptions& options) : options_(options) {}
  std::string_view name() const override { return "soft"; }
  int select(const DraftTree& tree, int node, const Candidates& candidates,
             std::span<int> kept) const override;

  // Between steps: the share pruned where the drafter is certain.
  void set_beta(float beta) { options_.beta_base = beta; }
  const ControllerOptions& options() const { return options_; }

 private:
  ControllerOptions options_;
};

// Everything, up to a width.
std::unique_ptr<Pruning> no_pruning(int width);

std::unique_ptr<Pruning> soft_pruning(const ControllerOptions& options);

// q(x) >= epsilon * largest q (the "epsilon" or min-p rule), epsilon in (0, 1].
std::unique_ptr<Pruning> epsilon_pruning(float epsilon, int width);

// The first max(1, floor(width * decay^(depth - 1))) candidates for children at that depth: a beam
// that narrows, decay in (0, 1].
std::unique_ptr<Pruning> beam_decay_pruning(int width, float decay);

// As many of the likeliest candidates as the shape gives that node children.
std::unique_ptr<Pruning> shape_pruning(TreeShape shape, std::string name);

// Diversity between paths, on top of another rule: leaves out a candidate when the tree holds
// another node of its token at its depth and the two paths, itself included, agree at no less than
// `most_shared` of their positions (in (0, 1]); a node keeps its likeliest candidate all the same.
std::unique_ptr<Pruning> diverse(std::unique_ptr<Pruning> inner, float most_shared);

// "chain:K" (K nodes in a line), "medusa" (63 nodes) and "eagle" (25): the last two laid out as by
// TreeShape::likeliest for the acceptance by rank of parallel heads (flat) and of an autoregressive
// head (steep).
Result<TreeShape> named_shape(std::string_view name);

}  // namespace sapwood
