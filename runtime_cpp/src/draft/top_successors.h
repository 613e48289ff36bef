// The eight likeliest tokens of a row of logits, cheaply: one pass of maxima over the row, then
// only the few blocks that can hold one of them.
//
// The eighth largest block maximum is a threshold that at least eight logits reach, so blocks whose
// maximum lies below it hold none of the eight likeliest. The normaliser is summed over the blocks
// that do; for the others it is the sum of their maxima times what every 16th of them holds for
// its maximum (a ratio estimate). A full softmax would cost more than all the rest, and what a
// probability is worth is calibrated afterwards anyway.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

namespace sapwood {

struct TopSuccessors {
  static constexpr int kMost = 8;
  int count = 0;  // below kMost only where fewer logits are finite
  std::array<int32_t, kMost> tokens;
  std::array<float, kMost> probability;  // falling; at temperature 1, see above
};

class TopSelector {
 public:
  // Room for rows of `vocabulary` logits; select() does not allocate.
  void reserve(int vocabulary);

  // By falling logit, among equals by rising id. A row with a logit that is no number gives none.
  void select(std::span<const float> logits, TopSuccessors& top);

 private:
  std::vector<float> block_largest_;
};

}  // namespace sapwood
