#include "verify/node_laws.h"

#include <array>
#include <string>

namespace sapwood {

Result<TokenLaw> LogitLaws::at(int node) {
  const size_t width = static_cast<size_t>(sampler_.vocabulary_size());
  const size_t row = static_cast<size_t>(node + 1);
  if (node >= tree_.size() || logits_.size() < (row + 1) * width) {
    return Status(Code::kInternal, "there are no logits for node " + std::to_string(node) +
                                       " of a tree of " + std::to_string(tree_.size()));
  }
  std::array<int, DraftTree::kCapacity> path;
  const int depth = node == DraftTree::kRoot ? 0 : tree_.path(node, path);
  for (int i = 0; i < depth; ++i) sampler_.push(tree_.token(path[i]));
  Result<TokenLaw> law = sampler_.law(logits_.subspan(row * width, width));
  sampler_.rewind(mark_);
  return law;
}

}  // namespace sapwood
