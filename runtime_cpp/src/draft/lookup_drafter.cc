#include "draft/lookup_drafter.h"

#include <algorithm>
#include <cmath>

#include "draft/sampled_growth.h"

namespace sapwood {
namespace {

constexpr float kLeast = 1e-9f;  // predicted acceptance, so that its logarithm is finite

// The probability that one draw from the candidates is accepted if the target wants a candidate as
// often as predicted and, when it does, wants nothing else: what tokens drawn in proportion to
// `acceptance` hit on average.
float acceptance_of_a_draw(std::span<const Candidate> candidates) {
  float all = 0;
  float squares = 0;
  for (const Candidate& candidate : candidates) {
    all += candidate.acceptance;
    squares += candidate.acceptance * candidate.acceptance;
  }
  return all > 0 ? squares / all : 0;
}

}  // namespace

LookupDrafter::LookupDrafter()
    : tokens_(static_cast<size_t>(DraftTree::kCapacity + 1) * TreeGrower::kMaxWidth) {}

Status LookupDrafter::propose(const DraftRequest& request, DraftTree& tree) {
  grower_.grow(
      request, [&](int node, std::span<Candidate> out) { return look_up(tree, node, out); },
      [&](int node, int rank) { added(tree, node, rank); }, tree);
  return Status::okay();
}

int LookupDrafter::rank_of(const DraftTree& tree, int node) const {
  const auto known =
      tokens_.begin() + static_cast<long>(tree.parent(node) + 1) * TreeGrower::kMaxWidth;
  return static_cast<int>(std::find(known, known + TreeGrower::kMaxWidth - 1, tree.token(node)) -
                          known);
}

Status LookupDrafter::propose_sampled(const DraftRequest& request, Chance& chance, DraftTree& tree,
                                      Proposals& proposals) {
  const auto expand = [&](int node) -> Result<Expansion> {
    if (node != DraftTree::kRoot) added(tree, node, rank_of(tree, node));
    std::array<Candidate, TreeGrower::kMaxWidth> all;
    const std::span<const Candidate> found(all.data(),
                                           static_cast<size_t>(look_up(tree, node, all)));
    int32_t* const tokens = tokens_.data() + static_cast<size_t>(node + 1) * TreeGrower::kMaxWidth;
    for (size_t i = 0; i < found.size(); ++i) {
      tokens[i] = found[i].token;
      log_q_[i] = std::log(std::max(kLeast, found[i].acceptance));
    }
    Expansion expansion;
    expansion.candidates = {{tokens, found.size()}, {log_q_.data(), found.size()}, entropy(found)};
    expansion.acceptance = acceptance_of_a_draw(found);
    return expansion;
  };
  return sampled_grower_.grow(sampled_growth(request), request.pruning, expand, chance, tree,
                              proposals);
}

}  // namespace sapwood
