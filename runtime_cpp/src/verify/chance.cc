#include "verify/chance.h"

#include <cmath>

namespace sapwood {

int choose_by_uniform(std::span<const double> weights, double u) {
  double whole = 0;
  for (const double weight : weights) whole += weight;
  const double target = u * whole;
  double cumulative = 0;
  int chosen = 0;
  // Rounding may leave the target a hair above the last sum: then the last entry that can come out
  // does.
  for (int i = 0; i < static_cast<int>(weights.size()); ++i) {
    if (!(weights[i] > 0)) continue;
    chosen = i;
    cumulative += weights[i];
    if (cumulative > target) break;
  }
  return chosen;
}

bool accept_by_uniform(double log_probability, double u) { return std::log(u) < log_probability; }

}  // namespace sapwood
