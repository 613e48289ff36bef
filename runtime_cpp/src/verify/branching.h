// Takes every branch of a random procedure in turn, each with its probability.
//
//   BranchingChance chance;
//   do {
//     chance.rewind();
//     run(chance);                      // asks the same questions as long as the answers agree
//     law[outcome] += chance.weight();
//   } while (chance.advance());
//
// An accept-or-reject decision branches in two, a draw once per entry that can come out: nothing is
// sampled, so the law that is summed up is exact but for rounding.
#pragma once

#include <cassert>
#include <cmath>
#include <cstddef>
#include <utility>
#include <vector>

#include "tree/chance.h"

namespace sapwood {

class BranchingChance final : public Chance {
 public:
  // Back to the start of the procedure, to follow the path chosen by advance().
  void rewind() {
    depth_ = 0;
    weight_ = 1;
  }

  // The next path, depth first. False once all have been taken.
  bool advance() {
    while (!forks_.empty()) {
      Fork& fork = forks_.back();
      if (next_branch(fork, fork.taken + 1)) return true;
      forks_.pop_back();
    }
    return false;
  }

  // Probability of the path taken since rewind().
  double weight() const { return weight_; }

  bool accept(double log_probability) override {
    const double p = log_probability < 0 ? std::exp(log_probability) : log_probability >= 0;
    return fork({p, 1 - p}) == 0;
  }

  int choose(std::span<const double> weights) override {
    double whole = 0;
    for (const double weight : weights) whole += weight;
    assert(whole > 0 && "nothing to choose from");
    std::vector<double> branches;
    for (const double weight : weights) branches.push_back(weight / whole);
    return fork(std::move(branches));
  }

 private:
  struct Fork {
    std::vector<double> branches;  // probabilities
    int taken = 0;
  };

  static bool next_branch(Fork& fork, int from) {
    while (from < static_cast<int>(fork.branches.size()) && !(fork.branches[from] > 0)) ++from;
    fork.taken = from;
    return from < static_cast<int>(fork.branches.size());
  }

  int fork(std::vector<double> branches) {
    if (depth_ == forks_.size()) {
      forks_.push_back({std::move(branches), 0});
      next_branch(forks_.back(), 0);
    }
    const Fork& here = forks_[depth_++];
    weight_ *= here.branches[here.taken];
    return here.taken;
  }

  std::vector<Fork> forks_;
  size_t depth_ = 0;
  double weight_ = 1;
};

}  // namespace sapwood
