#include "draft/acceptance_table.h"

#include <algorithm>

namespace sapwood {
namespace {

// Before anything was seen: how much the promise of a context of each length class is worth, and
// how many promised tokens' worth of evidence that is. Averages of what SmolLM2-135M-Instruct kept
// on ten prompts of ours, greedy and at temperature 0.8; escape method C promises too little for
// long contexts.
constexpr std::array<double, AcceptanceTable::kLengths> kFirstPromise = {0.6, 0.7, 0.9, 0.7,
                                                                         1.1, 1.2, 1.2};
constexpr double kFirstPromiseWeight = 2;

}  // namespace

int AcceptanceTable::length_class(int length) {
  constexpr std::array<int, kLengths> kFrom = {1, 2, 3, 4, 6, 9, 16};
  int at = kLengths - 1;
  while (at > 0 && length < kFrom[at]) --at;
  return at;
}

int AcceptanceTable::cell_of(int length, double probability) {
  constexpr std::array<double, kProbabilities> kFrom = {0,   0.01, 0.03, 0.1,  0.2,
                                                        0.3, 0.45, 0.6,  0.75, 0.9};
  int at = kProbabilities - 1;
  while (at > 0 && probability < kFrom[at]) --at;
  return length_class(length) * kProbabilities + at;
}

double AcceptanceTable::kept_promise(int length) const {
  const int at = length_class(length);
  const Promise& promise = promises_[at];
  return (promise.came + kFirstPromise[at] * kFirstPromiseWeight) /
         (promise.promised + kFirstPromiseWeight);
}

double AcceptanceTable::prior(int length, double probability) const {
  return std::min(probability * kept_promise(length), 1.0);
}

double AcceptanceTable::estimate(int length, double probability) const {
  const Cell& cell = cells_[cell_of(length, probability)];
  return (cell.came + kPriorTrials * prior(length, probability)) / (cell.trials + kPriorTrials);
}

void AcceptanceTable::observe(int length, double probability, bool came) {
  Cell& cell = cells_[cell_of(length, probability)];
  if (cell.trials >= kMemory) {
    cell.trials /= 2;
    cell.came /= 2;
  }
  cell.trials += 1;
  cell.came += came ? 1 : 0;
  Promise& promise = promises_[length_class(length)];
  if (promise.promised >= kMemory) {
    promise.promised /= 2;
    promise.came /= 2;
  }
  promise.promised += probability;
  promise.came += came ? 1 : 0;
}

double AcceptanceTable::trials(int length, double probability) const {
  return cells_[cell_of(length, probability)].trials;
}

}  // namespace sapwood
