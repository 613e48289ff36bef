// Drafts from the text itself: what followed the present context when it occurred before.
//
// The longest suffix of the text that occurred earlier is looked up in a suffix automaton, and so
// are the next shorter ones. Their continuations are mixed as in prediction by partial matching
// (Cleary and Witten, 1984, with escape method C of Moffat, 1990): a context seen n times with d
// distinct successors gives count / (n + d) to each and leaves d / (n + d) to the shorter contexts.
// That probability is the drafter's q; what it is worth, and so which candidate comes first, is
// learnt from how earlier guesses fared.
#pragma once

#include <array>
#include <memory>
#include <optional>

#include "draft/acceptance_table.h"
#include "draft/foresight.h"
#include "draft/lookup_drafter.h"
#include "draft/suffix_automaton.h"

namespace sapwood {

class NgramDrafter final : public LookupDrafter {
 public:
  static constexpr int kMaxTokens = 1 << 16;  // remembered at most; older text is forgotten
  static constexpr int kMaxContexts = 8;      // suffixes looked at, longest first
  static constexpr int kMaxEdges = 12;        // successors looked at per suffix, latest first

  // A context: an automaton state and how many tokens back it is known to match.
  struct Context {
    int state = SuffixAutomaton::kInitial;
    int matched = 0;
    uint64_t position = 0;  // of the token that comes next, in the output
  };
  struct Guess {
    int32_t token;
    int matched;  // length of the longest context that suggested it
    double probability;
    double acceptance;  // what that has been worth
    Context then;       // the context once it has come
  };
  using Guesses = std::array<Guess, TreeGrower::kMaxWidth>;

  const DrafterTraits& traits() const override;
  void foresee(const TargetDraws& draws) override { foresight_.start(draws); }
  Status start(std::span<const int32_t> tokens, int max_tokens) override;
  void follow(std::span<const int32_t> tokens) override;

  Context present() const;
  // The longest context that `token` after `context` is known to match; for tokens that another
  // drafter suggested.
  Context advance(const Context& context, int32_t token) const;
  // The likeliest successors, by falling acceptance; returns how many.
  int guess(const Context& context, int width, Guesses& guesses) const;

  const AcceptanceTable& acceptance() const { return acceptance_[foresight_.drawn() ? 1 : 0]; }

 private:
  int look_up(const DraftTree& tree, int node, std::span<Candidate> out) override;
  void added(const DraftTree& tree, int node, int rank) override;
  Context* contexts_of(int node) {
    return successor_.data() + static_cast<size_t>(node + 1) * TreeGrower::kMaxWidth;
  }

  std::optional<SuffixAutomaton> automaton_;
  Foresight foresight_;
  uint64_t position_ = 0;                                 // tokens since start()
  std::array<AcceptanceTable, 2> acceptance_;             // of greedy texts, of drawn ones
  std::array<Context, DraftTree::kCapacity> context_of_;  // by node
  std::vector<Context> successor_;  // [node + 1][kMaxWidth], the contexts of a node's candidates
};

}  // namespace sapwood
