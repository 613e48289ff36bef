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

// -1 if the law does not hold the token.
int entry_of(const TokenLaw& law, int32_t token) {
  if (law.tokens.empty()) return token >= 0 && token < law.size() ? token : -1;
  const auto found = std::lower_bound(law.tokens.begin(), law.tokens.end(), token);
  return found != law.tokens.end() && *found == token ? static_cast<int>(found - law.tokens.begin())
                                                      : -1;
}

}  // namespace

void Residual::start(const TokenLaw& law, const Proposals::View& proposal) {
  kept_ = proposal.size();
  std::array<int, Proposals::kMaxKept> entries;  // of the law, ascending: the proposal's tokens
  int found = 0;
  double whole = 0;
  q_left_ = 0;
  for (int i = 0; i < kept_; ++i) {
    tokens_[i] = proposal.tokens[i];
    q_[i] = proposal.q[i];
    q_left_ += q_[i];
    r_[i] = 0;
    const int entry = entry_of(law, tokens_[i]);
    if (entry < 0) continue;
    r_[i] = weight_of(law.log_p[entry]);
    whole += r_[i];
    int at = found++;
    for (; at > 0 && entries[at - 1] > entry; --at) entries[at] = entries[at - 1];
    entries[at] = entry;
  }
  // What lies between them is summed by itself: a difference would leave a rest of rounding, and so
  // a residual without tokens, where the proposal covers the whole law.
  double outside = 0;
  int begin = 0;
  for (int i = 0; i <= found; ++i) {
    const int end = i < found ? entries[i] : law.size();
    outside += vector_loops().mass(law.log_p.data() + begin, end - begin);
    begin = end + 1;
  }
  whole += outside;
  for (int i = 0; i < kept_; ++i) r_[i] /= whole;
  outside_ = outside / whole;
  outside_scale_ = 1 / whole;
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
  for (int i = 0; i < kept_; ++i) {
    const int entry = entry_of(law, tokens_[i]);
    if (entry >= 0) weights[entry] = r_[i];
  }
  return law.token(chance.choose(std::span<const double>(weights).first(n)));
}

}  // namespace sapwood
