// Chance from counter-based random numbers.
#pragma once

#include <cstdint>
#include <span>

#include "tree/chance.h"
#include "verify/random.h"

namespace sapwood {

// Inverse CDF: the first entry at which the cumulative weight exceeds u times the whole.
int choose_by_uniform(std::span<const double> weights, double u);

// log(u) < log_probability, strictly: a probability of zero is not accepted at u = 0 either.
bool accept_by_uniform(double log_probability, double u);

// Counter-based: the draws of the step whose first emitted token has output position `position`
// depend on (seed, stream, position) and on how many draws the step made before, on nothing else.
class CounterChance final : public Chance {
 public:
  static constexpr int kDrawsPerStep = 1 << 16;  // far above what a tree of 256 nodes can ask for

  CounterChance(uint64_t seed, RandomStream stream, uint64_t position)
      : seed_(seed), stream_(stream), next_(position * kDrawsPerStep) {}

  bool accept(double log_probability) override {
    return accept_by_uniform(log_probability, uniform());
  }
  int choose(std::span<const double> weights) override {
    return choose_by_uniform(weights, uniform());
  }

 private:
  double uniform() { return counter_uniform(seed_, next_++, stream_); }

  const uint64_t seed_;
  const RandomStream stream_;
  uint64_t next_;
};

}  // namespace sapwood
