#include "tree/dynamic_tree_prune.h"

#include <algorithm>
#include <cmath>
#include <string>

namespace sapwood {

Status dynamic_tree_prune(std::span<const float> logits, int rows, int vocabulary,
                          std::span<const float> uncertainty, const ControllerOptions& options,
                          CandidateSelector& selector, int32_t* kept_indices,
                          float* importance_weights, uint8_t* tree_mask) {
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
    Candidates candidates = found.value();
    if (!uncertainty.empty()) candidates.uncertainty = uncertainty[static_cast<size_t>(row)];
    if (candidates.uncertainty && !(*candidates.uncertainty >= 0 && *candidates.uncertainty <= 1)) {
      return Status(Code::kInvalidArgument,
                    "row " + std::to_string(row) + " of the uncertainty is " +
                        std::to_string(*candidates.uncertainty) + "; it must be in [0, 1]");
    }
    const float ratio = prune_ratio(uncertainty_of(candidates, options), options);
    const SoftTruncation kept = soft_truncate(candidates, ratio, options.max_tree_width);
    const size_t at = static_cast<size_t>(row) * width;
    std::fill_n(kept_indices + at, width, -1);
    std::fill_n(importance_weights + at, width, 0.f);
    std::fill_n(tree_mask + at, width, uint8_t{0});
    for (size_t k = 0; k < static_cast<size_t>(kept.kept); ++k) {
      kept_indices[at + k] = candidates.tokens[k];
      importance_weights[at + k] = std::exp(kept.log_weight);
      tree_mask[at + k] = 1;
    }
  }
  return Status::okay();
}

}  // namespace sapwood
