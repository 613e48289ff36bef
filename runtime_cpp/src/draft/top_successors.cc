#include "draft/top_successors.h"

#include <algorithm>
#include <cmath>
#include <limits>

#include "verify/exponential.h"
#include "verify/isa/vector_loops.h"

namespace sapwood {
namespace {

constexpr int kBlock = 256;
constexpr int kSampled = 16;  // one block in so many counts for the others
constexpr float kNothing = -std::numeric_limits<float>::infinity();

// The values of a list of at most kMost, falling, with what they belong to.
struct Ranking {
  int count = 0;
  std::array<float, TopSuccessors::kMost> values;
  std::array<int32_t, TopSuccessors::kMost> items;

  float entry() const { return count < TopSuccessors::kMost ? kNothing : values[count - 1]; }
  void insert(float value, int32_t item) {  // value > entry(); of equals the earlier stays in front
    int at = std::min(count, TopSuccessors::kMost - 1);
    count = at + 1;
    for (; at > 0 && values[at - 1] < value; --at) {
      values[at] = values[at - 1];
      items[at] = items[at - 1];
    }
    values[at] = value;
    items[at] = item;
  }
};

}  // namespace

void TopSelector::reserve(int vocabulary) {
  block_largest_.resize(
      std::max<size_t>(block_largest_.size(), (vocabulary + kBlock - 1) / kBlock));
}

void TopSelector::select(std::span<const float> logits, TopSuccessors& top) {
  const VectorLoops& loops = vector_loops();
  const int n = static_cast<int>(logits.size());
  const int blocks = (n + kBlock - 1) / kBlock;
  top.count = 0;
  if (blocks > static_cast<int>(block_largest_.size())) return;  // reserve() was not called
  const auto block = [&](int b) {
    return logits.subspan(static_cast<size_t>(b) * kBlock, std::min(kBlock, n - b * kBlock));
  };

  Ranking best_blocks;
  bool bad = false;
  for (int b = 0; b < blocks; ++b) {
    const float largest = loops.largest(block(b).data(), static_cast<int>(block(b).size()), &bad);
    block_largest_[b] = largest;
    if (largest > best_blocks.entry()) best_blocks.insert(largest, b);
  }
  if (bad || best_blocks.count == 0) return;  // the verifier reports what is no number
  const float threshold = best_blocks.count < TopSuccessors::kMost ? kNothing : best_blocks.entry();

  Ranking best;
  const float largest = best_blocks.values[0];
  std::array<float, kBlock> shifted;
  double mass = 0;
  // Of the blocks that hold none: all of their largest, and of every 16th also all it holds.
  double others_largest = 0;
  double sampled_largest = 0;
  double sampled_mass = 0;
  for (int b = 0; b < blocks; ++b) {
    const bool holds_one = block_largest_[b] >= threshold && block_largest_[b] > kNothing;
    const float at_most = holds_one ? 0.f : exp_nonpositive(block_largest_[b] - largest);
    others_largest += at_most;
    if (!holds_one && b % kSampled != 0) continue;
    const std::span<const float> values = block(b);
    const int size = static_cast<int>(values.size());
    loops.scale(values.data(), size, largest, 1.f, shifted.data());
    const double here = loops.mass(shifted.data(), size);
    if (!holds_one) {
      sampled_largest += at_most;
      sampled_mass += here;
      continue;
    }
    mass += here;
    for (int i = 0; i < size; ++i) {
      if (values[i] > best.entry()) best.insert(values[i], b * kBlock + i);
    }
  }
  if (sampled_largest > 0) mass += others_largest * sampled_mass / sampled_largest;

  top.count = best.count;
  for (int i = 0; i < best.count; ++i) {
    top.tokens[i] = best.items[i];
    top.probability[i] =
        static_cast<float>(std::exp(static_cast<double>(best.values[i]) - largest) / mass);
  }
}

}  // namespace sapwood
