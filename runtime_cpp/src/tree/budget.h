// How many nodes pay: MATH.md, section 5.
//
// A step that verifies a tree T emits 1 + sum of A(v) tokens on average, A(v) being the product of
// the predicted acceptances down to v, and costs draft + verify(1 + |T|) + overhead milliseconds.
// Adding nodes by falling A gives the best tree of every size; of these the one with the most
// tokens per millisecond is kept, which may be a chain or no tree at all.
#pragma once

#include <array>
#include <span>

#include "tree/draft_tree.h"

namespace sapwood {

// Milliseconds to verify N rows on this device with this model, by N.
//
// Knots at powers of two, linear between them, never falling. `observe` refines the curve from the
// engine's own steps; it influences how much is drafted, never what is emitted.
class CostCurve {
 public:
  static constexpr int kKnots = 9;  // 1, 2, 4, ... 256 rows
  static constexpr int knot_rows(int knot) { return 1 << knot; }

  // The shape of a kernel made for few rows (design/prototypes: 1, 1.27, 1.76, 3.06, 5.83 times at
  // 1, 4, 8, 16, 32 rows), in units of one row's time; scaled to milliseconds by the first steps.
  static CostCurve assumed();
  // From measurements: rows ascending, at least one, milliseconds above 0.
  static CostCurve measured(std::span<const int> rows, std::span<const double> milliseconds);

  double milliseconds(int rows) const;  // beyond the last knot: the last slope

  // One pass over `rows` rows took this long. Knots that have not been seen for a while return to
  // the shape the curve began with: a size that was slow once, for a reason that has passed, is
  // tried again.
  void observe(int rows, double milliseconds);

 private:
  using Knots = std::array<double, kKnots>;
  static double at(const Knots& knots, int rows);
  void smooth();

  Knots shape_{};        // what the curve began as
  Knots latest_{};       // running averages of what was seen
  Knots weight_{};       // of the averages, in observations; fades
  Knots smoothed_{};     // latest_ without falls
  bool scaled_ = false;  // an assumed curve has no unit until the first observation
};

// Decides, node by node in order of falling path acceptance, how large the tree should be.
//
//   Budget budget(curve, overhead_ms, max_nodes);
//   while (budget.wants(next_path_acceptance)) { add the node; budget.add(next_path_acceptance); }
//   tree.truncate(budget.best_nodes());
class Budget {
 public:
  // overhead_ms: what a step costs beside the verify pass, whatever the tree.
  Budget(const CostCurve& curve, double overhead_ms, int max_nodes);

  // Could any tree that goes on with nodes of at most this path acceptance beat the best so far?
  // Looks past steps of the curve: a bucket worth filling is found.
  bool wants(double path_acceptance) const;
  // draft_ms: what finding this node cost, if that is worth counting.
  void add(double path_acceptance, double draft_ms = 0);

  int nodes() const { return nodes_; }
  int best_nodes() const { return best_nodes_; }     // of the nodes added, how many to keep
  double best_ratio() const { return best_ratio_; }  // tokens per millisecond

 private:
  std::array<double, DraftTree::kCapacity + 1> verify_ms_;  // by nodes
  double fixed_ms_;
  int max_nodes_;
  int nodes_ = 0;
  int best_nodes_ = 0;
  double expected_ = 1.0;
  double best_ratio_;
};

}  // namespace sapwood
