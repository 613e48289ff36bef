// The likeliest tokens of a drafter's distribution, with what pruning wants to know of the rest.
#pragma once

#include <algorithm>
#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <vector>

#include "base/status.h"

namespace sapwood {

struct Candidates {
  static constexpr int kMost = 32;

  std::span<const int32_t> tokens;  // by falling probability, the lower id first among equals
  std::span<const float> log_q;     // natural logarithms, normalised over the whole distribution
  float entropy = 0;                // of the whole distribution, in nats
  // What a trained head says of this position (tree/controller.h), in [0, 1]; without it pruning
  // goes by the entropy.
  std::optional<float> uncertainty = std::nullopt;
  int size() const { return static_cast<int>(tokens.size()); }
  Candidates first(int most) const {
    const size_t count = std::min(tokens.size(), static_cast<size_t>(std::max(most, 0)));
    return {tokens.first(count), log_q.first(count), entropy, uncertainty};
  }
};

// Finds them without sorting: the largest score of each block of 128 bounds what can be among the
// first, and few blocks are looked into. Made once for a vocabulary; allocates nothing later.
class CandidateSelector {
 public:
  explicit CandidateSelector(int vocabulary_size);

  // scores: logits or log probabilities up to a constant, at most vocabulary_size; ids: what token
  // each belongs to, ascending, or empty if entry i is token i. At most `most` (1 to
  // Candidates::kMost) candidates with a probability above 0, valid until the next call. An error
  // if a score is NaN or +infinity, or all are -infinity.
  Result<Candidates> select(std::span<const float> scores, std::span<const int32_t> ids, int most);

 private:
  std::vector<float> block_max_;
  std::vector<float> order_;
  std::array<int32_t, Candidates::kMost> tokens_;
  std::array<float, Candidates::kMost> log_q_;
};

}  // namespace sapwood
