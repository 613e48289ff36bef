// The target's law at the nodes of a draft tree, as verifiers see it.
#pragma once

#include <span>

#include "base/status.h"
#include "tree/draft_tree.h"
#include "verify/sampling.h"

namespace sapwood {

class NodeLaws {
 public:
  virtual ~NodeLaws() = default;
  // What the target would draw from after the text and the path to `node` (kRoot: after the text);
  // valid until the next call.
  virtual Result<TokenLaw> at(int node) = 0;
};

// From the logits of one verify pass [1 + nodes][vocabulary], row 0 the root's, through the one
// sampling transform. The path to the node is in the history that the penalty sees, while the law
// is made and no longer.
class LogitLaws final : public NodeLaws {
 public:
  LogitLaws(const DraftTree& tree, std::span<const float> logits, Sampler& sampler)
      : tree_(tree), logits_(logits), sampler_(sampler), mark_(sampler.mark()) {}

  Result<TokenLaw> at(int node) override;

 private:
  const DraftTree& tree_;
  const std::span<const float> logits_;
  Sampler& sampler_;
  const int mark_;
};

}  // namespace sapwood
