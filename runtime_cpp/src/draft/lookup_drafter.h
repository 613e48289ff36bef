// Drafters that look a node's candidates up, one node at a time (n-grams, tables): trees chosen by
// rank and trees drawn at random, over the same candidates.
//
// For a drawn tree the candidates' predicted acceptances are the proposal: they are this side's
// estimate of the target's law. What they leave to unknown tokens counts as one more outcome when
// the controller asks how certain the drafter is.
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "draft/drafter.h"
#include "draft/growth.h"
#include "tree/sampled_tree.h"

namespace sapwood {

class LookupDrafter : public Drafter {
 public:
  Status propose(const DraftRequest& request, DraftTree& tree) final;
  Status propose_sampled(const DraftRequest& request, Chance& chance, DraftTree& tree,
                         Proposals& proposals) final;

 protected:
  LookupDrafter();

  // Writes at most out.size() candidates of `node` (kRoot included), the likeliest to be accepted
  // first, tokens distinct, and returns how many. Called at most once for a node of a tree, after
  // added().
  virtual int look_up(const DraftTree& tree, int node, std::span<Candidate> out) = 0;
  // `node` is in the tree: candidate number `rank` of its parent.
  virtual void added(const DraftTree& tree, int node, int rank) = 0;

 private:
  int rank_of(const DraftTree& tree, int node) const;

  TreeGrower grower_;
  SampledTreeGrower sampled_grower_;
  std::vector<int32_t> tokens_;                       // [node + 1][kMaxWidth], of a sampled tree
  std::array<float, TreeGrower::kMaxWidth> log_q_{};  // of the node looked up last
};

}  // namespace sapwood
