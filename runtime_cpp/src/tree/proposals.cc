#include "tree/proposals.h"

#include <algorithm>
#include <cmath>

namespace sapwood {

Proposals::Proposals()
    : tokens_((DraftTree::kCapacity + 1) * kMaxKept),
      q_((DraftTree::kCapacity + 1) * kMaxKept),
      left_((DraftTree::kCapacity + 1) * kMaxKept) {}

void Proposals::clear() { counts_.fill({}); }

bool Proposals::set(int node, std::span<const int32_t> tokens, std::span<const float> log_q) {
  const size_t n = tokens.size();
  if (node < DraftTree::kRoot || node >= DraftTree::kCapacity || n == 0 || n > kMaxKept ||
      log_q.size() != n || counts_[node + 1].kept != 0) {
    return false;
  }
  const float largest = *std::max_element(log_q.begin(), log_q.end());
  if (!std::isfinite(largest)) return false;
  const size_t at = begin(node);
  double whole = 0;
  for (size_t i = 0; i < n; ++i) {
    tokens_[at + i] = tokens[i];
    q_[at + i] = std::exp(static_cast<double>(log_q[i]) - static_cast<double>(largest));
    whole += q_[at + i];
  }
  if (!(whole > 0 && std::isfinite(whole))) return false;
  for (size_t i = 0; i < n; ++i) left_[at + i] = q_[at + i] /= whole;
  counts_[node + 1] = {static_cast<int16_t>(n), 0};
  return true;
}

Proposals::View Proposals::at(int node) const {
  const size_t n = static_cast<size_t>(counts_[node + 1].kept);
  return {{tokens_.data() + begin(node), n}, {q_.data() + begin(node), n}};
}

int Proposals::draw(int node, Chance& chance) {
  const std::span<double> left(left_.data() + begin(node),
                               static_cast<size_t>(counts_[node + 1].kept));
  if (std::none_of(left.begin(), left.end(), [](double q) { return q > 0; })) return -1;
  const int entry = chance.choose(left);
  left[entry] = 0;
  ++counts_[node + 1].drawn;
  return entry;
}

float Proposals::log_q(int node, int entry) const {
  return static_cast<float>(std::log(q_[begin(node) + entry]));
}

}  // namespace sapwood
