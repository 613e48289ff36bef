// What `sapwood tune` measured: milliseconds of a verify pass by rows and by committed tokens.
#pragma once

#include <vector>

#include "base/status.h"
#include "tree/budget.h"

namespace sapwood {

struct CostGrid {
  std::vector<int> contexts;         // ascending, at least one
  std::vector<int> rows;             // ascending, at least one
  std::vector<double> milliseconds;  // [context][rows], above 0

  bool empty() const { return milliseconds.empty(); }
  Status check() const;

  // The curve at `context` tokens: linear between the measured contexts and beyond them, as the
  // cost of attention is, but never below half of the nearest measurement.
  CostCurve at(int context) const;
};

}  // namespace sapwood
