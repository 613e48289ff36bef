#include "verify/residual.h"

#include <algorithm>
#include <cmath>

#include "verify/exponential.h"
#include "verify/isa/vector_loops.h"

namespace sapwood {
namespace {

// The weight that plain decoding's draw gives an entry: the same function, so that what is verified
// against is what would have been drawn from.
double weight_of(float log_p) { return static_cast<double>(exp_nonpositive(log_p)); }

}  // namespace

void Residual::start(const TokenLaw& law, const Proposals::View& proposal) {
  const double whole = vector_loops().mass(law.log_p.data(), law.size());
  kept_ = proposal.size();
  outside_scale_ = 1 / whole;
  outside_ = 1;
  q_left_ = 0;
  for (int i = 0; i < kept_; ++i) {
    tokens_[i] = proposal.tokens[i];
    r_[i] = weight_of(law.log_probability(tokens_[i])) / whole;
    q_[i] = proposal.q[i];
    outside_ -= r_[i];
    q_left_ += q_[i];
  }
  outside_ = std::max(outside_, 0.0);
}

double Residual::log_ratio(int entry) const {
  return std::log(r_[entry]) - std::log(q_[entry] / q_left_);
}

double Residual::excess(double a) const {
  double sum = a * outside_;
  for (int i = 0; i < kept_; ++i) {
    const double q = q_left_ > 0 ? q_[i] / q_left_ : 0;
    sum += std::max(a * r_[i] - q, 0.0);
  }
  return sum;
}

double Residual::log_weight_after_rejection(double a) const {
  const double above = excess(a);
  const double whole = above + (1 - a);
  return whole > 0 ? std::log(above / whole) : 0.0;
}

void Residual::reject(int entry, double a) {
  const double above = excess(a);
  if (above > 0) {
    for (int i = 0; i < kept_; ++i) {
      const double q = q_left_ > 0 ? q_[i] / q_left_ : 0;
      r_[i] = std::max(a * r_[i] - q, 0.0) / above;
    }
    outside_ *= a / above;
    outside_scale_ *= a / above;
  }
  q_[entry] = 0;
  q_left_ = 0;
  for (int i = 0; i < kept_; ++i) q_left_ += q_[i];
}

int32_t Residual::draw(const TokenLaw& law, std::vector<double>& weights, Chance& chance) const {
  const size_t n = static_cast<size_t>(law.size());
  for (size_t i = 0; i < n; ++i) weights[i] = outside_scale_ * weight_of(law.log_p[i]);
  for (int k = 0; k < kept_; ++k) {
    int64_t at = tokens_[k];
    if (!law.tokens.empty()) {
      const auto found = std::lower_bound(law.tokens.begin(), law.tokens.end(), tokens_[k]);
      if (found == law.tokens.end() || *found != tokens_[k]) continue;
      at = found - law.tokens.begin();
    }
    if (at < 0 || at >= law.size()) continue;
    weights[at] = r_[k];
  }
  return law.token(chance.choose(std::span<const double>(weights).first(n)));
}

}  // namespace sapwood
