// N-grams of the text and the target's own successors in one tree.
//
// Both name a node's candidates; the same token from both is one candidate. What each thinks of it,
// calibrated by itself, is looked up together in a table of what such pairs of opinions have been
// worth, which starts at the larger of the two. So an agreement of both, or the silence of one,
// counts for what it turned out to mean. What deeper nodes promise is corrected by depth.
#pragma once

#include <array>
#include <vector>

#include "draft/ngram_drafter.h"
#include "draft/successor_drafter.h"

namespace sapwood {

class MixDrafter final : public LookupDrafter {
 public:
  static constexpr int kMaxDepthLearnt = 16;  // deeper nodes share the last one's correction

  // saved: what the successor table begins with, or null.
  explicit MixDrafter(const NgramTable* saved = nullptr);

  const DrafterTraits& traits() const override;
  void foresee(const TargetDraws& draws) override;
  Status start(std::span<const int32_t> tokens, int max_tokens) override;
  void follow(std::span<const int32_t> tokens) override;
  void observe(const VerifiedRows& rows) override;

  const NgramDrafter& ngram() const { return ngram_; }
  const SuccessorDrafter& successor() const { return successor_; }
  double kept_at_depth(int depth) const;  // of the acceptance predicted there, the part that came

 private:
  struct Context {
    NgramDrafter::Context ngram;
    SuccessorDrafter::Context successor;
  };
  struct Guess {
    int32_t token;
    float probability;           // the larger of both sources' own
    float by_ngram;              // calibrated acceptance, 0: not suggested
    float by_successor;          // likewise
    float acceptance;            // both together
    NgramDrafter::Context then;  // matched 0: still to be looked up
  };
  using Guesses = std::array<Guess, TreeGrower::kMaxWidth>;
  struct Cell {
    double came = 0;
    double trials = 0;
    double prior = 0;  // sum of what the larger source said
  };

  int look_up(const DraftTree& tree, int node, std::span<Candidate> out) override;
  void added(const DraftTree& tree, int node, int rank) override;
  NgramDrafter::Context* contexts_of(int node) {
    return successor_of_.data() + static_cast<size_t>(node + 1) * TreeGrower::kMaxWidth;
  }

  Context present() const { return {ngram_.present(), successor_.present()}; }
  Context context_at(int node) const;
  int guess(const Context& context, Guesses& guesses) const;
  int cell_of(const Guess& guess) const;
  double together(const Guess& guess) const;

  NgramDrafter ngram_;
  SuccessorDrafter successor_;
  // [greedy or drawn][band of the n-gram's][band of the successor's]
  std::vector<Cell> opinions_;
  struct Promise {
    double promised = 0;
    double came = 0;
  };
  std::array<std::array<Promise, kMaxDepthLearnt + 1>, 2> by_depth_{};  // of greedy, drawn texts
  int drawn_ = 0;
  std::array<Context, DraftTree::kCapacity> context_of_;  // by node
  std::vector<NgramDrafter::Context> successor_of_;       // [node + 1][kMaxWidth]
};

}  // namespace sapwood
