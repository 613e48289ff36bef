// The trained half of the pruning controller (MATH.md, section 3): a network of two layers on the
// draft's last hidden state that predicts how probable a rejection is here.
//
//   a = sigmoid(w2 . relu(W1 h + b1) + b2)
//
// trained by binary cross-entropy against 1 - sum over x of min(p(x), q(x)). A draft that brings
// one puts its word into Candidates::uncertainty; the operator DynamicTreePrune takes it as an
// input.
#pragma once

#include <span>
#include <vector>

#include "base/status.h"

namespace sapwood {

class UncertaintyHead {
 public:
  // w1 [units][hidden], b1 [units], w2 [units], b2: row-major, copied. kCorrupt if sizes disagree
  // or a value is not finite.
  static Result<UncertaintyHead> create(std::span<const float> w1, std::span<const float> b1,
                                        std::span<const float> w2, float b2);

  int hidden_size() const { return hidden_size_; }
  int units() const { return static_cast<int>(b1_.size()); }

  // hidden [hidden_size()] -> a in [0, 1], the same bits with every instruction set; a hidden state
  // that is not finite is as uncertain as can be: 1. Allocates nothing.
  float uncertainty(std::span<const float> hidden) const;

 private:
  int hidden_size_ = 0;
  std::vector<float> w1_;
  std::vector<float> b1_;
  std::vector<float> w2_;
  float b2_ = 0;
};

}  // namespace sapwood
