// What guesses are worth once the draws of their position are known (verify/race.h).
//
// A guess of probability q arrives after E(token) / q; the tokens that were not guessed arrive
// together, after about one over their mass. If the target's probabilities were q, the first would
// be drawn. They are not quite, so a guess gets the share (q / E)^kSharpness of all such: as if the
// logarithms of q were off by noise of Gumbel's law and width 1 / kSharpness. What that is worth is
// calibrated afterwards. Decoding greedily, nothing changes.
#pragma once

#include <cmath>
#include <cstdint>
#include <span>

#include "verify/race.h"

namespace sapwood {

class Foresight {
 public:
  static constexpr double kSharpness = 1.5;

  void start(const TargetDraws& draws) { draws_ = draws; }
  bool drawn() const { return draws_.temperature > 0; }  // else greedy

  // guesses: anything with `token` and `probability`, distinct tokens, for one output position.
  template <typename Guess>
  void weigh(uint64_t position, std::span<Guess> guesses) const {
    if (!drawn()) return;
    double left = 1;
    for (const Guess& guess : guesses) left -= guess.probability;
    double all = left > 0 ? std::pow(left, kSharpness) : 0;
    for (Guess& guess : guesses) {
      const double speed = guess.probability / arrival_time(draws_.seed, position, guess.token);
      guess.probability = std::pow(speed, kSharpness);
      all += guess.probability;
    }
    for (Guess& guess : guesses) guess.probability /= all;
  }

  // Probabilities at temperature 1, falling, become those at the text's temperature. What is not
  // among the guesses is taken to lie at the probability of the last one.
  template <typename Guess>
  void heat(std::span<Guess> guesses) const {
    if (!drawn() || draws_.temperature == 1 || guesses.empty()) return;
    const double power = 1 / static_cast<double>(draws_.temperature);
    double left = 1;
    for (const Guess& guess : guesses) left -= guess.probability;
    const double last = guesses.back().probability;
    double all = left > 0 && last > 0 ? left * std::pow(last, power - 1) : 0;
    for (Guess& guess : guesses) {
      guess.probability = std::pow(guess.probability, power);
      all += guess.probability;
    }
    for (Guess& guess : guesses) guess.probability /= all;
  }

 private:
  TargetDraws draws_;
};

}  // namespace sapwood
