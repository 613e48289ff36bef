#include "tree/budget.h"

#include <algorithm>
#include <bit>
#include <cmath>

#include "tree/draft_tree.h"

namespace sapwood {
namespace {

constexpr double kMostWeight = 10;     // an average is over about this many observations
constexpr double kFading = 0.99;       // of a knot's weight with every step that does not touch it
constexpr double kTrust = 10;          // how little a knot moves with the others once it was seen
constexpr double kLeastWeight = 0.05;  // of a knot nobody has seen, beside ones that were

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
  curve.shape_ = {1.0, 1.1, 1.27, 1.76, 3.06, 5.83, 11.7, 23.3, 46.6};
  curve.latest_ = curve.smoothed_ = curve.shape_;
  return curve;
}

CostCurve CostCurve::measured(std::span<const int> rows, std::span<const double> milliseconds) {
  const CostCurve outside = assumed();
  const size_t n = std::min(rows.size(), milliseconds.size());
  if (n == 0) return outside;
  CostCurve curve;
  for (int k = 0; k < kKnots; ++k) {
    const int wanted = knot_rows(k);
    if (wanted <= rows[0] || wanted >= rows[n - 1]) {
      // Outside what was measured: the assumed shape through the nearest measurement.
      const size_t nearest = wanted <= rows[0] ? 0 : n - 1;
      curve.shape_[k] = milliseconds[nearest] * outside.milliseconds(wanted) /
                        outside.milliseconds(rows[nearest]);
    } else {
      const size_t above = std::upper_bound(rows.begin(), rows.begin() + n, wanted) - rows.begin();
      const double f =
          static_cast<double>(wanted - rows[above - 1]) / (rows[above] - rows[above - 1]);
      curve.shape_[k] = milliseconds[above - 1] * (1 - f) + milliseconds[above] * f;
    }
  }
  curve.latest_ = curve.shape_;
  curve.scaled_ = true;
  curve.smooth();
  return curve;
}

double CostCurve::at(const Knots& knots, int rows) {
  const Place here = place(rows);
  return knots[here.knot] * (1 - here.fraction) + knots[here.knot + 1] * here.fraction;
}

double CostCurve::milliseconds(int rows) const { return at(smoothed_, rows); }

void CostCurve::observe(int rows, double milliseconds) {
  if (!(milliseconds > 0)) return;
  if (!scaled_) {
    const double unit = milliseconds / at(shape_, rows);
    for (double& knot : latest_) knot *= unit;
    scaled_ = true;
  }
  // In logarithms and bounded, so that one step that was interrupted cannot bend the curve.
  const double error = std::log(std::clamp(milliseconds / at(latest_, rows), 0.25, 4.0));
  const Place here = place(rows);
  for (int k = 0; k < kKnots; ++k) {
    const double share = k == here.knot       ? 1 - here.fraction
                         : k == here.knot + 1 ? here.fraction
                                              : 0.0;
    if (share > 0) {
      latest_[k] *= std::exp(error * share / (2 + weight_[k]));  // what it began as counts for one
      weight_[k] = std::min(weight_[k] + share, kMostWeight);
    } else {
      weight_[k] *= kFading;
    }
  }
  const double scale = at(latest_, rows) / at(shape_, rows);
  for (int k = 0; k < kKnots; ++k) {
    if (k == here.knot || (k == here.knot + 1 && here.fraction > 0)) continue;
    const double pull = 1 / (1 + kTrust * weight_[k]);  // all the way for a knot never seen
    latest_[k] *= std::exp(pull * std::log(scale * shape_[k] / latest_[k]));
  }
  smooth();
}

// Isotonic regression by pooling adjacent violators (Ayer et al., 1955): more rows never cost less,
// so a fall is noise, and the knots it spans are set to their weighted mean.
void CostCurve::smooth() {
  struct Pool {
    double mean;
    double weight;
    int knots;
  };
  std::array<Pool, kKnots> pools;
  int n = 0;
  for (int k = 0; k < kKnots; ++k) {
    pools[n++] = {latest_[k], weight_[k] + kLeastWeight, 1};
    while (n > 1 && pools[n - 2].mean > pools[n - 1].mean) {
      const Pool& right = pools[n - 1];
      Pool& left = pools[n - 2];
      const double weight = left.weight + right.weight;
      left = {(left.mean * left.weight + right.mean * right.weight) / weight, weight,
              left.knots + right.knots};
      --n;
    }
  }
  int k = 0;
  for (int p = 0; p < n; ++p) {
    for (int i = 0; i < pools[p].knots; ++i) smoothed_[k++] = pools[p].mean;
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
