// Where sampling drafters and verifiers get their luck from.
//
// Each decision is asked for by its probability, so that the same code runs on counter-based random
// numbers (verify/chance.h) and under the enumerator, which takes every branch in turn
// (verify/branching.h).
#pragma once

#include <span>

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

}  // namespace sapwood
