#include "tree/uncertainty_head.h"

#include <algorithm>
#include <cmath>
#include <string>

#include "tree/isa/softmax_loops.h"

namespace sapwood {
namespace {

bool all_finite(std::span<const float> values) {
  return std::all_of(values.begin(), values.end(), [](float v) { return std::isfinite(v); });
}

}  // namespace

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
  const SoftmaxLoops& loops = softmax_loops();
  double score = b2_;
  for (size_t unit = 0; unit < b1_.size(); ++unit) {
    const float* row = w1_.data() + unit * static_cast<size_t>(hidden_size_);
    const double sum = static_cast<double>(b1_[unit]) + loops.dot(row, hidden.data(), hidden_size_);
    score += static_cast<double>(w2_[unit]) * std::max(sum, 0.0);
  }
  const double a = 1.0 / (1.0 + std::exp(-score));
  return std::isnan(a) ? 1.f : static_cast<float>(a);
}

}  // namespace sapwood
