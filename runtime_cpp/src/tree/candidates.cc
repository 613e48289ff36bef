#include "tree/candidates.h"

#include <algorithm>
#include <cmath>
#include <functional>
#include <limits>
#include <string>

#include "tree/isa/softmax_loops.h"

namespace sapwood {

CandidateSelector::CandidateSelector(int vocabulary_size)
    : block_max_(static_cast<size_t>((vocabulary_size + kSoftmaxBlock - 1) / kSoftmaxBlock)),
      order_(block_max_.size()) {}

Result<Candidates> CandidateSelector::select(std::span<const float> scores,
                                             std::span<const int32_t> ids, int most) {
  const int n = static_cast<int>(scores.size());
  const size_t blocks = (scores.size() + kSoftmaxBlock - 1) / kSoftmaxBlock;
  if (n == 0 || blocks > block_max_.size() || (!ids.empty() && ids.size() != scores.size())) {
    return Status(Code::kInvalidArgument, "a drafter gave " + std::to_string(n) +
                                              " scores for a vocabulary of at most " +
                                              std::to_string(block_max_.size() * kSoftmaxBlock));
  }
  const SoftmaxLoops& loops = softmax_loops();
  const bool sound = loops.block_maxima(scores.data(), n, block_max_.data());
  const std::span<const float> maxima(block_max_.data(), blocks);
  const float largest = *std::max_element(maxima.begin(), maxima.end());
  if (!sound || largest == -std::numeric_limits<float>::infinity()) {
    return Status(Code::kInvalidArgument, "a drafter's scores are not finite numbers");
  }
  const SoftmaxSums sums = loops.sums(scores.data(), n, largest);

  const size_t width = static_cast<size_t>(std::clamp(most, 1, Candidates::kMost));
  // The width-th largest block holds a score that at least `width` scores reach.
  float floor = -std::numeric_limits<float>::infinity();
  if (blocks > width) {
    std::copy(maxima.begin(), maxima.end(), order_.begin());
    std::nth_element(order_.begin(), order_.begin() + width - 1, order_.begin() + blocks,
                     std::greater<float>());
    floor = order_[width - 1];
  }
  // Insertion into a sorted list; among equals the earlier entry, with the lower id, stays ahead.
  size_t kept = 0;
  for (size_t b = 0; b < blocks; ++b) {
    if (maxima[b] < floor || (kept == width && maxima[b] <= log_q_[width - 1])) continue;
    const int begin = static_cast<int>(b) * kSoftmaxBlock;
    const int end = std::min(begin + kSoftmaxBlock, n);
    for (int i = begin; i < end; ++i) {
      const float score = scores[i];
      if (score < floor || score == -std::numeric_limits<float>::infinity()) continue;
      if (kept == width && score <= log_q_[width - 1]) continue;
      size_t at = kept < width ? kept++ : width - 1;
      for (; at > 0 && log_q_[at - 1] < score; --at) {
        log_q_[at] = log_q_[at - 1];
        tokens_[at] = tokens_[at - 1];
      }
      log_q_[at] = score;
      tokens_[at] = ids.empty() ? i : ids[i];
    }
  }
  const double log_mass = std::log(sums.mass);
  for (size_t i = 0; i < kept; ++i) {
    log_q_[i] = static_cast<float>(static_cast<double>(log_q_[i] - largest) - log_mass);
  }
  Candidates found;
  found.tokens = {tokens_.data(), kept};
  found.log_q = {log_q_.data(), kept};
  // H = log sum - sum of q (score - largest).
  found.entropy = static_cast<float>(std::max(log_mass - sums.moment / sums.mass, 0.0));
  return found;
}

}  // namespace sapwood
