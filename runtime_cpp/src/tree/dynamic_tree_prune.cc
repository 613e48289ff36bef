#include "tree/dynamic_tree_prune.h"

#include <algorithm>
#include <cmath>
#include <string>

namespace sapwood {

Status dynamic_tree_prune(std::span<const float> logits, int rows, int vocabulary,
                          const ControllerOptions& options, CandidateSelector& selector,
                          int32_t* kept_indices, float* importance_weights, uint8_t* tree_mask) {
  SAPWOOD_TRY(options.check());
  const size_t width = static_cast<size_t>(options.max_tree_width);
  for (int row = 0; row < rows; ++row) {
    const size_t n = static_cast<size_t>(vocabulary);
    const Result<Candidates> found = selector.select(
        logits.subspan(static_cast<size_t>(row) * n, n), {}, options.max_tree_width);
    if (!found.ok()) {
      return Status(found.status().code(),
                    "row " + std::to_string(row) + " of the logits: " + found.status().message());
    }
    const float ratio = prune_ratio(entropy_uncertainty(found.value().entropy, options), options);
    const SoftTruncation kept = soft_truncate(found.value(), ratio, options.max_tree_width);
    const size_t at = static_cast<size_t>(row) * width;
    std::fill_n(kept_indices + at, width, -1);
    std::fill_n(importance_weights + at, width, 0.f);
    std::fill_n(tree_mask + at, width, uint8_t{0});
    for (size_t k = 0; k < static_cast<size_t>(kept.kept); ++k) {
      kept_indices[at + k] = found.value().tokens[k];
      importance_weights[at + k] = std::exp(kept.log_weight);
      tree_mask[at + k] = 1;
    }
  }
  return Status::okay();
}

}  // namespace sapwood
