#include "tree/cost_grid.h"

#include <algorithm>
#include <cmath>
#include <string>

namespace sapwood {
namespace {

bool ascends(const std::vector<int>& values, int lowest) {
  return !values.empty() && values.front() >= lowest &&
         std::adjacent_find(values.begin(), values.end(), std::greater_equal<int>()) ==
             values.end();
}

}  // namespace

Status CostGrid::check() const {
  const auto invalid = [](std::string what) { return Status(Code::kInvalidArgument, what); };
  if (!ascends(contexts, 0)) return invalid("measured contexts must ascend, from 0 or above");
  if (!ascends(rows, 1)) return invalid("measured rows must ascend, from 1 or above");
  if (milliseconds.size() != contexts.size() * rows.size()) {
    return invalid("there must be one measurement for each context and number of rows");
  }
  for (const double ms : milliseconds) {
    if (!(ms > 0) || !std::isfinite(ms)) return invalid("a measured time must be above 0");
  }
  return Status::okay();
}

CostCurve CostGrid::at(int context) const {
  if (empty()) return CostCurve::assumed();
  const size_t n = rows.size();
  if (contexts.size() == 1) return CostCurve::measured(rows, milliseconds);
  // The two measured contexts around this one, or the two nearest.
  const size_t above = std::clamp<size_t>(
      std::upper_bound(contexts.begin(), contexts.end(), context) - contexts.begin(), 1,
      contexts.size() - 1);
  const double fraction =
      static_cast<double>(context - contexts[above - 1]) / (contexts[above] - contexts[above - 1]);
  std::vector<double> here(n);
  for (size_t i = 0; i < n; ++i) {
    const double low = milliseconds[(above - 1) * n + i];
    const double high = milliseconds[above * n + i];
    const double nearest = fraction < 0.5 ? low : high;
    here[i] = std::max(low + fraction * (high - low), 0.5 * nearest);
  }
  return CostCurve::measured(rows, here);
}

}  // namespace sapwood
