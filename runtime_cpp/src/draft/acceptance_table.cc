#include "draft/acceptance_table.h"

namespace sapwood {

int AcceptanceTable::cell_of(int length, double probability) {
  constexpr std::array<int, kLengths> kLengthFrom = {1, 2, 3, 4, 6, 9, 16};
  constexpr std::array<double, kProbabilities> kProbabilityFrom = {0,   0.01, 0.03, 0.1,  0.2,
                                                                   0.3, 0.45, 0.6,  0.75, 0.9};
  int by_length = kLengths - 1;
  while (by_length > 0 && length < kLengthFrom[by_length]) --by_length;
  int by_probability = kProbabilities - 1;
  while (by_probability > 0 && probability < kProbabilityFrom[by_probability]) --by_probability;
  return by_length * kProbabilities + by_probability;
}

double AcceptanceTable::estimate(int length, double probability) const {
  const Cell& cell = cells_[cell_of(length, probability)];
  return (cell.came + kPriorTrials * probability) / (cell.trials + kPriorTrials);
}

void AcceptanceTable::observe(int length, double probability, bool came) {
  Cell& cell = cells_[cell_of(length, probability)];
  if (cell.trials >= kMemory) {
    cell.trials /= 2;
    cell.came /= 2;
  }
  cell.trials += 1;
  cell.came += came ? 1 : 0;
}

double AcceptanceTable::trials(int length, double probability) const {
  return cells_[cell_of(length, probability)].trials;
}

}  // namespace sapwood
