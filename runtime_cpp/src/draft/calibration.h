// How often guesses of a class came true, by the probability they were made with.
//
// A cell is a class and a band of probabilities. Its estimate starts at the probability times what
// the whole class has kept of its promises, worth kPriorTrials observations, and moves to what was
// seen; old observations fade. (AcceptanceTable is the same idea for n-grams, by context length.)
#pragma once

#include <array>
#include <span>
#include <vector>

namespace sapwood {

// Siblings exclude each other, so their acceptances cannot add up to more than this.
inline constexpr float kMostTogether = 0.98f;

class Calibration {
 public:
  static constexpr int kBands = 10;  // finer towards 0, where most guesses are
  static constexpr double kPriorTrials = 4;
  static constexpr double kMemory = 256;  // trials after which a cell's counts are halved

  // first_promise: by class, the share of its probability a guess is worth before anything is seen.
  explicit Calibration(std::span<const double> first_promise);

  // Probability that a guess of this class comes true.
  double estimate(int of_class, double probability) const;
  void observe(int of_class, double probability, bool came);

  double kept_promise(int of_class) const;
  int classes() const { return static_cast<int>(promises_.size()); }

  static int band_of(double probability);

 private:
  struct Cell {
    double came = 0;
    double trials = 0;
  };
  struct Promise {
    double first = 1;
    double promised = 0;  // sum of probabilities
    double came = 0;
  };
  std::vector<Cell> cells_;  // [class][band]
  std::vector<Promise> promises_;
};

}  // namespace sapwood
