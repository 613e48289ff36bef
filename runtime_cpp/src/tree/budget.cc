#include "tree/budget.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "tree/draft_tree.h"

namespace sapwood {
namespace {

// Where `rows` lies between knots: knots[0] * (1 - fraction) + knots[1] * fraction. Rows beyond the
// last knot are extrapolated from the last two.
struct Place {
  int knot;
  double fraction;
};

Place place(int rows) {
  rows = std::max(rows, 1);
  const int knot = std::min(static_cast<int>(std::bit_width(static_cast<unsigned>(rows))) - 1,
                            CostCurve::kKnots - 2);
  const int low = CostCurve::knot_rows(knot);
  return {knot, static_cast<double>(rows - low) / low};
}

}  // namespace

CostCurve CostCurve::assumed() {
  CostCurve curve;
  curve.milliseconds_ = {1.0, 1.1, 1.27, 1.76, 3.06, 5.83, 11.7, 23.3, 46.6};
  return curve;
}

CostCurve CostCurve::measured(std::span<const int> rows, std::span<const double> milliseconds) {
  CostCurve curve = assumed();
  curve.scaled_ = true;
  const size_t n = std::min(rows.size(), milliseconds.size());
  if (n == 0) return assumed();
  const CostCurve shape = curve;
  for (int k = 0; k < kKnots; ++k) {
    const int at = knot_rows(k);
    if (at <= rows[0] || at >= rows[n - 1]) {
      // Outside what was measured: the assumed shape through the nearest measurement.
      const size_t nearest = at <= rows[0] ? 0 : n - 1;
      curve.milliseconds_[k] =
          milliseconds[nearest] * shape.milliseconds(at) / shape.milliseconds(rows[nearest]);
    } else {
      const size_t above = std::upper_bound(rows.begin(), rows.begin() + n, at) - rows.begin();
      const double f = static_cast<double>(at - rows[above - 1]) / (rows[above] - rows[above - 1]);
      curve.milliseconds_[k] = milliseconds[above - 1] * (1 - f) + milliseconds[above] * f;
    }
    if (at >= rows[0] && at <= rows[n - 1]) curve.observations_[k] = 1;
  }
  return curve;
}

double CostCurve::milliseconds(int rows) const {
  const Place at = place(rows);
  return milliseconds_[at.knot] * (1 - at.fraction) + milliseconds_[at.knot + 1] * at.fraction;
}

void CostCurve::observe(int rows, double milliseconds) {
  if (!(milliseconds > 0)) return;
  if (!scaled_) {
    const double unit = milliseconds / this->milliseconds(rows);
    for (double& knot : milliseconds_) knot *= unit;
    scaled_ = true;
  }
  const double error = milliseconds / this->milliseconds(rows);
  // In logarithms and bounded, so that one step that was interrupted cannot bend the curve. A
  // knot's first observations count for more; after ten it is an average over about ten steps.
  const double step = std::log(std::clamp(error, 0.25, 4.0));
  const Place at = place(rows);
  const std::array<double, 2> weights = {1 - at.fraction, at.fraction};
  double moved = 0;
  for (int i = 0; i < 2; ++i) {
    const int knot = at.knot + i;
    if (weights[i] <= 0) continue;
    const double rate = std::max(0.1, 1.0 / (observations_[knot] + 1));
    moved = std::max(moved, weights[i] * rate);
    milliseconds_[knot] *= std::exp(weights[i] * rate * step);
    if (weights[i] >= 0.5) ++observations_[knot];
  }
  // Knots that nobody has seen keep their shape relative to the ones that were.
  for (int k = 0; k < kKnots; ++k) {
    if (observations_[k] == 0 && k != at.knot && k != at.knot + 1) {
      milliseconds_[k] *= std::exp(moved * step);
    }
  }
}

Budget::Budget(const CostCurve& curve, double overhead_ms, int max_nodes)
    : fixed_ms_(overhead_ms), max_nodes_(std::min(max_nodes, DraftTree::kCapacity)) {
  for (int n = 0; n <= max_nodes_; ++n) verify_ms_[n] = curve.milliseconds(n + 1);
  best_ratio_ = 1.0 / (verify_ms_[0] + fixed_ms_);
}

bool Budget::wants(double path_acceptance) const {
  double expected = expected_;
  for (int n = nodes_ + 1; n <= max_nodes_; ++n) {
    expected += path_acceptance;
    if (expected > best_ratio_ * (verify_ms_[n] + fixed_ms_)) return true;
  }
  return false;
}

void Budget::add(double path_acceptance, double draft_ms) {
  if (nodes_ >= max_nodes_) return;
  ++nodes_;
  expected_ += path_acceptance;
  fixed_ms_ += draft_ms;
  const double ratio = expected_ / (verify_ms_[nodes_] + fixed_ms_);
  if (ratio > best_ratio_) {
    best_ratio_ = ratio;
    best_nodes_ = nodes_;
  }
}

}  // namespace sapwood
