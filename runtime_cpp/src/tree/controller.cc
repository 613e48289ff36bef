#include "tree/controller.h"

#include <algorithm>
#include <cmath>
#include <string>

namespace sapwood {
namespace {

Status out_of_range(const char* option, double value, const char* range) {
  return Status(Code::kInvalidArgument,
                std::string(option) + " is " + std::to_string(value) + "; it must be " + range);
}

}  // namespace

Status ControllerOptions::check() const {
  if (!(beta_base >= 0 && beta_base <= 1)) return out_of_range("beta_base", beta_base, "in [0, 1]");
  if (!(rho_min >= 0 && rho_min <= rho_max)) {
    return out_of_range("rho_min", rho_min, "at least 0 and not above rho_max");
  }
  if (!(rho_max < 1)) return out_of_range("rho_max", rho_max, "below 1");
  if (max_tree_width < 1 || max_tree_width > Candidates::kMost) {
    return out_of_range("max_tree_width", max_tree_width, "between 1 and 32");
  }
  if (!(entropy_low >= 0 && entropy_low < entropy_high && std::isfinite(entropy_high))) {
    return out_of_range("entropy_low", entropy_low, "at least 0 and below entropy_high");
  }
  return Status::okay();
}

float entropy_uncertainty(float entropy, const ControllerOptions& options) {
  const float a = (entropy - options.entropy_low) / (options.entropy_high - options.entropy_low);
  return std::clamp(a, 0.f, 1.f);
}

float uncertainty_of(const Candidates& candidates, const ControllerOptions& options) {
  return candidates.uncertainty ? std::clamp(*candidates.uncertainty, 0.f, 1.f)
                                : entropy_uncertainty(candidates.entropy, options);
}

int draft_length(float entropy) { return entropy < 0.5f ? 8 : entropy < 1.f ? 4 : 1; }

float prune_ratio(float uncertainty, const ControllerOptions& options) {
  return std::clamp(options.beta_base * (1.f - uncertainty), options.rho_min, options.rho_max);
}

SoftTruncation soft_truncate(const Candidates& candidates, float ratio, int max_tree_width) {
  const int most = std::clamp(max_tree_width, 1, candidates.size());
  const double goal = 1.0 - static_cast<double>(ratio);
  double mass = 0;
  int kept = 0;
  while (kept < most && (kept == 0 || mass < goal)) {
    mass += std::exp(static_cast<double>(candidates.log_q[kept]));
    ++kept;
  }
  const float log_mass = static_cast<float>(std::log(std::min(mass, 1.0)));
  return {kept, log_mass, -log_mass};
}

}  // namespace sapwood
