#include "draft/calibration.h"

#include <algorithm>

namespace sapwood {
namespace {

constexpr double kFirstPromiseWeight = 4;  // in promised tokens

}  // namespace

Calibration::Calibration(std::span<const double> first_promise)
    : cells_(first_promise.size() * kBands), promises_(first_promise.size()) {
  for (size_t i = 0; i < first_promise.size(); ++i) promises_[i].first = first_promise[i];
}

int Calibration::band_of(double probability) {
  constexpr std::array<double, kBands> kFrom = {0, 0.02, 0.05, 0.1, 0.2, 0.3, 0.45, 0.6, 0.75, 0.9};
  int band = kBands - 1;
  while (band > 0 && probability < kFrom[band]) --band;
  return band;
}

double Calibration::kept_promise(int of_class) const {
  const Promise& promise = promises_[of_class];
  return (promise.came + promise.first * kFirstPromiseWeight) /
         (promise.promised + kFirstPromiseWeight);
}

double Calibration::estimate(int of_class, double probability) const {
  const Cell& cell = cells_[static_cast<size_t>(of_class) * kBands + band_of(probability)];
  const double prior = std::min(probability * kept_promise(of_class), 1.0);
  return (cell.came + kPriorTrials * prior) / (cell.trials + kPriorTrials);
}

void Calibration::observe(int of_class, double probability, bool came) {
  Cell& cell = cells_[static_cast<size_t>(of_class) * kBands + band_of(probability)];
  if (cell.trials >= kMemory) {
    cell.trials /= 2;
    cell.came /= 2;
  }
  cell.trials += 1;
  cell.came += came ? 1 : 0;
  Promise& promise = promises_[of_class];
  if (promise.promised >= kMemory) {
    promise.promised /= 2;
    promise.came /= 2;
  }
  promise.promised += probability;
  promise.came += came ? 1 : 0;
}

}  // namespace sapwood
