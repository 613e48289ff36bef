// The target's law at one node while the node's drawn children are rejected one by one.
//
// Rejecting a child x takes away what the proposal covered: r <- normalise(max(a r - q, 0)), and x
// leaves the proposal: q(x) <- 0, renormalised (MATH.md, section 4; `a` is 1 in multi-round
// rejection, the node's acceptance weight in block and traversal verification). A proposal holds
// few tokens, and outside of them r only changes by a factor: so the state is a few dozen numbers,
// however wide the vocabulary, and the law itself is walked when it is loaded and when it is drawn
// from.
#pragma once

#include <array>
#include <cstdint>
#include <vector>

#include "tree/chance.h"
#include "tree/proposals.h"
#include "verify/sampling.h"

namespace sapwood {

class Residual {
 public:
  // r = the law, q = the proposal (which may be empty: a leaf).
  void start(const TokenLaw& law, const Proposals::View& proposal);

  // log r(x) - log q(x) of the proposal's entry, q renormalised without the rejected ones;
  // -infinity where r(x) = 0.
  double log_ratio(int entry) const;

  // Sum over x of max(a r(x) - q(x), 0).
  double excess(double a) const;

  // The entry was rejected: r and q as above. Where max(a r - q, 0) is zero everywhere, which only
  // rounding can bring about after a rejection, r stays.
  void reject(int entry, double a);

  // log of the chance that everything is accepted up to a node of weight `a` once what was drawn
  // below has been rejected: log(excess / (excess + 1 - a)).
  double log_weight_after_rejection(double a) const;

  // Draws from r. `law` is the one given to start(); weights: scratch, as long as the law.
  int32_t draw(const TokenLaw& law, std::vector<double>& weights, Chance& chance) const;

 private:
  int kept_ = 0;
  std::array<int32_t, Proposals::kMaxKept> tokens_;
  std::array<double, Proposals::kMaxKept> r_;
  std::array<double, Proposals::kMaxKept> q_;  // 0 once rejected
  double q_left_ = 0;                          // their sum
  double outside_ = 0;                         // mass of r outside the proposal's tokens
  double outside_scale_ = 0;                   // there, r = scale * weight in the law
};

}  // namespace sapwood
