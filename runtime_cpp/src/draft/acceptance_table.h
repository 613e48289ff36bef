// How often guesses of a kind came true: the drafter's confidence, calibrated while it runs.
//
// Guesses are sorted into cells by the length of the context they were found with and by the
// probability the drafter gives them. A cell's estimate starts at the drafter's own probability,
// worth kPriorTrials observations, and moves to what was seen; old observations fade.
#pragma once

#include <array>

namespace sapwood {

class AcceptanceTable {
 public:
  static constexpr int kLengths = 7;         // 1, 2, 3, 4-5, 6-8, 9-15, 16 and more tokens
  static constexpr int kProbabilities = 10;  // finer towards 0, where most guesses are
  static constexpr double kPriorTrials = 4;
  static constexpr double kMemory = 256;  // trials after which a cell's counts are halved

  // Probability that a guess found with a context of `length` tokens, to which the drafter gives
  // `probability`, is what the target picks.
  double estimate(int length, double probability) const;

  // Such a guess was, or was not, what came.
  void observe(int length, double probability, bool came);

  double trials(int length, double probability) const;

  // Of the probability promised with contexts of this length, the part that came true.
  double kept_promise(int length) const;

 private:
  struct Cell {
    double came = 0;
    double trials = 0;
  };
  static int cell_of(int length, double probability);
  static int length_class(int length);
  double prior(int length, double probability) const;

  struct Promise {
    double promised = 0;  // sum of probabilities
    double came = 0;
  };
  std::array<Cell, kLengths * kProbabilities> cells_;
  std::array<Promise, kLengths> promises_;
};

}  // namespace sapwood
