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

bool all_finite(std::span<const float> values) {
  return std::all_of(values.begin(), values.end(), [](float v) { return std::isfinite(v); });
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

Result<UncertaintyHead> UncertaintyHead::create(std::span<const float> w1,
                                                std::span<const float> b1,
                                                std::span<const float> w2, float b2) {
  const size_t units = b1.size();
  if (units == 0 || w2.size() != units || w1.empty() || w1.size() % units != 0) {
    return Status(Code::kCorrupt,
                  "an uncertainty head needs w1 [units, hidden], b1 and w2 "
                  "[units]; it has " +
                      std::to_string(w1.size()) + ", " + std::to_string(units) + " and " +
                      std::to_string(w2.size()) + " values");
  }
  if (!all_finite(w1) || !all_finite(b1) || !all_finite(w2) || !std::isfinite(b2)) {
    return Status(Code::kCorrupt, "an uncertainty head's weights are not all finite numbers");
  }
  UncertaintyHead head;
  head.hidden_size_ = static_cast<int>(w1.size() / units);
  head.w1_.assign(w1.begin(), w1.end());
  head.b1_.assign(b1.begin(), b1.end());
  head.w2_.assign(w2.begin(), w2.end());
  head.b2_ = b2;
  return head;
}

float UncertaintyHead::uncertainty(std::span<const float> hidden) const {
  double score = b2_;
  for (size_t unit = 0; unit < b1_.size(); ++unit) {
    const float* row = w1_.data() + unit * static_cast<size_t>(hidden_size_);
    double sum = b1_[unit];
    for (int i = 0; i < hidden_size_; ++i) {
      sum += static_cast<double>(row[i]) * static_cast<double>(hidden[i]);
    }
    score += static_cast<double>(w2_[unit]) * std::max(sum, 0.0);
  }
  return static_cast<float>(1.0 / (1.0 + std::exp(-score)));
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
