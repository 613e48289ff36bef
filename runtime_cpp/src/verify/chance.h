// Where verifiers and sampling drafters get their luck from.
//
// Each decision is asked for by its probability, so that the same code runs on counter-based random
// numbers and under the enumerator, which takes every branch in turn (verify/branching.h).
#pragma once

#include <cstdint>
#include <span>

#include "verify/random.h"

namespace sapwood {

class Chance {
 public:
  virtual ~Chance() = default;

  // True with probability min(1, exp(log_probability)). Never true for -infinity or NaN.
  virtual bool accept(double log_probability) = 0;

  // Entry i with probability weights[i] / sum. Weights are finite and not below 0, one at least is
  // above 0; an entry of weight 0 never comes out.
  virtual int choose(std::span<const double> weights) = 0;
};

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
