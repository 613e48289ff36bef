#include "verify/masked_laws.h"

#include <algorithm>
#include <cmath>

namespace sapwood {

Result<TokenLaw> MaskedLaws::at(int node) {
  Result<TokenLaw> law = inner_.at(node);
  const Proposals::View proposal = proposals_.at(node);
  if (!law.ok() || proposal.size() == 0) return law;
  tokens_.assign(proposal.tokens.begin(), proposal.tokens.end());
  std::sort(tokens_.begin(), tokens_.end());
  log_p_.clear();
  for (const int32_t token : tokens_) log_p_.push_back(law.value().log_probability(token));
  const float largest = *std::max_element(log_p_.begin(), log_p_.end());
  if (largest == -INFINITY) return law;  // nothing kept can come out
  for (float& log_p : log_p_) log_p -= largest;
  return TokenLaw{tokens_, log_p_};
}

}  // namespace sapwood
