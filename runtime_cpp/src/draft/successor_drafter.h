// Drafts from the successor table: a whole tree without a pass of any model.
//
// The table outlives a text: start() keeps it, so that one answer helps the next. A node's
// candidates are what the target last said after its last two tokens, or after its last one.
#pragma once

#include <array>

#include "draft/calibration.h"
#include "draft/foresight.h"
#include "draft/lookup_drafter.h"
#include "draft/ngram_table.h"
#include "draft/successor_table.h"

namespace sapwood {

class SuccessorDrafter final : public LookupDrafter {
 public:
  // The last two tokens of a text, and the position of the one that comes next in the output.
  struct Context {
    int32_t before = SuccessorTable::kNoToken;
    int32_t token = SuccessorTable::kNoToken;
    uint64_t position = 0;

    Context then(int32_t next) const { return {token, next, position + 1}; }
  };
  struct Guess {
    int32_t token;
    int of_class;
    double probability;  // as the table has it; where tokens are drawn, knowing the draw
    float acceptance;    // what that has been worth
  };
  using Guesses = std::array<Guess, TopSuccessors::kMost>;

  // saved: what to begin with, or null.
  explicit SuccessorDrafter(const NgramTable* saved = nullptr);

  const DrafterTraits& traits() const override;
  void foresee(const TargetDraws& draws) override { foresight_.start(draws); }
  Status start(std::span<const int32_t> tokens, int max_tokens) override;
  void follow(std::span<const int32_t> tokens) override;
  void observe(const VerifiedRows& rows) override;

  Context present() const { return present_; }
  // The likeliest successors, by falling acceptance; returns how many.
  int guess(const Context& context, Guesses& guesses) const;

  const SuccessorTable& table() const { return table_; }
  const Calibration& calibration() const { return calibration_[foresight_.drawn() ? 1 : 0]; }

 private:
  int look_up(const DraftTree& tree, int node, std::span<Candidate> out) override;
  void added(const DraftTree& tree, int node, int rank) override;
  Context context_at(int node) const {
    return node == DraftTree::kRoot ? present_ : context_of_[node];
  }

  SuccessorTable table_;
  TopSelector selector_;
  Foresight foresight_;
  std::array<Calibration, 2> calibration_;  // of greedy texts, of drawn ones
  Context present_;
  std::array<Context, DraftTree::kCapacity> context_of_;  // by node
};

}  // namespace sapwood
