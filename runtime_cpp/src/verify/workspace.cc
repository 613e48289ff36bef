#include "verify/workspace.h"

#include <algorithm>

namespace sapwood {

int proposal_entry(const Proposals::View& proposal, int32_t token) {
  const auto found = std::find(proposal.tokens.begin(), proposal.tokens.end(), token);
  return found == proposal.tokens.end() ? -1 : static_cast<int>(found - proposal.tokens.begin());
}

void conclude(const DraftTree& tree, int node, int32_t last, const VerifyLimits& limits,
              Verdict& verdict) {
  std::array<int, DraftTree::kCapacity> path;
  const int depth = node == DraftTree::kRoot ? 0 : tree.path(node, path);
  verdict.accepted.clear();
  verdict.emitted.clear();
  const auto stops = [&](int32_t token) {
    return std::find(limits.stop_tokens.begin(), limits.stop_tokens.end(), token) !=
           limits.stop_tokens.end();
  };
  for (int i = 0; i < depth; ++i) {
    const int32_t token = tree.token(path[i]);
    verdict.accepted.push_back(path[i]);
    verdict.emitted.push_back(token);
    if (stops(token) || static_cast<int>(verdict.emitted.size()) == limits.max_tokens) return;
  }
  verdict.emitted.push_back(last);
}

}  // namespace sapwood
