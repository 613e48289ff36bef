// The ablation of MATH.md, section 4: what the published verify kernel does to the target.
#pragma once

#include <vector>

#include "tree/proposals.h"
#include "verify/node_laws.h"

namespace sapwood {

// p conditioned on the tokens that the proposal kept: biased wherever the target has mass outside.
// For measuring by how much, and for tests that must notice; no engine uses it.
class MaskedLaws final : public NodeLaws {
 public:
  MaskedLaws(NodeLaws& inner, const Proposals& proposals) : inner_(inner), proposals_(proposals) {}

  Result<TokenLaw> at(int node) override;

 private:
  NodeLaws& inner_;
  const Proposals& proposals_;
  std::vector<int32_t> tokens_;
  std::vector<float> log_p_;
};

}  // namespace sapwood
