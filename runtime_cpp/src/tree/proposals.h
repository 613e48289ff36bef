// q~ at every node of a sampled tree: the law its children were drawn from, without replacement.
//
// A drafter that samples fills this beside the DraftTree and the verifier reads it. The numbers
// that a child was drawn by are the numbers it is judged by: they are computed once, in set(). How
// many children were drawn is counted here, so that a drawn node that went missing is noticed
// (dropping one biases the text, MATH.md section 4).
#pragma once

#include <array>
#include <cstdint>
#include <span>
#include <vector>

#include "tree/chance.h"
#include "tree/draft_tree.h"

namespace sapwood {

class Proposals {
 public:
  static constexpr int kMaxKept = 32;  // tokens of one q~

  struct View {
    std::span<const int32_t> tokens;  // distinct
    std::span<const double> q;        // above or equal 0, summing to 1
    int size() const { return static_cast<int>(tokens.size()); }
  };

  Proposals();  // allocates all there is

  void clear();

  // The truncated proposal of `node` (kRoot included): 1 to kMaxKept distinct tokens with their
  // natural logarithms up to a constant; q~ is what they are after renormalisation. False, and
  // nothing changed, if they are too many, none can be drawn, or the node has a proposal already.
  bool set(int node, std::span<const int32_t> tokens, std::span<const float> log_q);

  // Empty if the node was never expanded.
  View at(int node) const;

  // Draws one more child from what is left of q~; its entry in at(node), or -1 when nothing with
  // q~ above 0 is left. The caller adds it to the tree.
  int draw(int node, Chance& chance);
  // One more child of `node` was drawn elsewhere, from the same numbers.
  void mark_drawn(int node) { ++counts_[node + 1].drawn; }
  int drawn(int node) const { return counts_[node + 1].drawn; }

  // log q~ of an entry, for DraftTree::log_q_kept.
  float log_q(int node, int entry) const;

 private:
  struct Counts {
    int16_t kept = 0;
    int16_t drawn = 0;
  };
  size_t begin(int node) const { return static_cast<size_t>(node + 1) * kMaxKept; }

  std::array<Counts, DraftTree::kCapacity + 1> counts_;  // by node + 1
  std::vector<int32_t> tokens_;                          // [node + 1][kMaxKept]
  std::vector<double> q_;
  std::vector<double> left_;  // q~, 0 once drawn
};

}  // namespace sapwood
