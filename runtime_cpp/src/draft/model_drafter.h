// A network drafts for the target: a second bundle's model, the target's own first layers, a head
// that was trained on its hidden states, or any of them behind a drafter that costs nothing.
//
// The tree grows a level at a time. One pass looks beyond all chosen guesses at once, which kernels
// for few rows make cheap; what it finds goes through the pruning controller (the entropy rule and
// soft truncation, tree/controller.h) into a pool of guesses, with acceptances that are calibrated
// by what came of earlier ones. Another pass is run as long as it is expected to pay: MATH.md,
// section 5, with a pass's measured cost as C_d. In the end the best tree that the pool and the
// budget allow is handed over.
//
// Looking ahead, it goes on: what is likeliest to lie on the text's way is looked beyond first, be
// it in the tree or not. When the text has then come to a guess that was looked beyond, what was
// found below it is where the next tree begins.
//
// With a `first` drafter (a cascade) its tree is in the pool before any pass, and the model is
// asked only where that leaves enough to be gained. A guess of both counts as one, and is worth
// what agreement has been worth.
#pragma once

#include <array>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "base/clock.h"
#include "draft/calibration.h"
#include "draft/draft_cache.h"
#include "draft/drafter.h"
#include "draft/foresight.h"
#include "draft/guess_pool.h"
#include "tree/candidates.h"
#include "tree/proposals.h"
#include "tree/pruning.h"
#include "verify/sampling.h"

namespace sapwood {

struct ModelDrafterOptions {
  // Of a pass of the drafting model, by the rows it gives logits for: where measuring starts.
  CostCurve cost = CostCurve::assumed();
  bool learn_costs = true;                        // off, equal runs draft equal trees
  int max_level = 32;                             // guesses that one pass looks beyond
  std::shared_ptr<DraftMemory> memory = nullptr;  // shared with others' drafters; null: its own
};

// What guesses are calibrated by beside their probability: the model's by rank (0, 1, 2-3, 4 and
// more), those that a cascade's first drafter named too, likewise, what only that one named, and
// children that were drawn: a node's first, and a later one.
enum GuessClass : int16_t {
  kNamed = 0,
  kAgreed = 4,
  kUnnamed = 8,
  kDrawn = 9,
  kDrawnLater = 10,
  kGuessClasses = 11
};

class ModelDrafter final : public Drafter {
 public:
  // name: what traits() says; it must outlive the drafter. first: null, or a drafter without passes
  // of its own that is asked before the model.
  ModelDrafter(std::string_view name, std::unique_ptr<DraftNetwork> network,
               const ModelDrafterOptions& options = {}, std::unique_ptr<Drafter> first = nullptr);
  ModelDrafter(std::string_view name, std::shared_ptr<Model> model,
               const ModelDrafterOptions& options = {}, std::unique_ptr<Drafter> first = nullptr);

  const DrafterTraits& traits() const override { return traits_; }
  void foresee(const TargetDraws& draws) override;
  Status start(std::span<const int32_t> tokens, int max_tokens) override;
  int hidden_states_taken() const override { return cache_.states_taken(); }
  Status read_prompt(int first, std::span<const float> hidden_states) override {
    return cache_.take_states(first, hidden_states);
  }
  void follow(std::span<const int32_t> tokens) override;
  void observe(const VerifiedRows& rows) override;
  Status propose(const DraftRequest& request, DraftTree& tree) override;
  Status propose_sampled(const DraftRequest& request, Chance& chance, DraftTree& tree,
                         Proposals& proposals) override;

  bool look_ahead(const DraftRequest& request) override;
  double saved_milliseconds() const override { return saved_ms_; }
  Ahead came_of_ahead() const override { return ahead_; }

  const CostCurve& cost_curve() const { return options_.cost; }
  int64_t passes() const { return passes_; }  // so far

 private:
  // Rows of unread text that count when a pass is weighed; a prompt is read once and helps all
  // steps.
  static constexpr int kUnreadCounted = 8;
  static constexpr int kDepths = 8;  // deeper guesses share the last one's yield

  // A node of a drawn tree that may draw another child, and what that is expected to bring.
  struct Open {
    float value;       // predicted probability that the next draw is reached and accepted
    float reached;     // that it is reached, given that the node stands: all before were rejected
    float acceptance;  // and accepted then
    float certainty;   // what draws from this law are calibrated by
    int16_t guess;
    bool operator<(const Open& other) const {
      if (value != other.value) return value < other.value;
      return guess > other.guess;  // the older first, so that trees agree between machines
    }
  };

  Status grow_chain(const DraftRequest& request, int max_nodes, DraftTree& tree);
  Status grow_shape(const DraftRequest& request, int max_nodes, DraftTree& tree);
  Status grow_budgeted(const DraftRequest& request, int max_nodes, DraftTree& tree);

  bool is_confident(const DraftTree& tree) const;
  void add_first(const DraftTree& tree, bool kept);  // the first drafter's, to the pool
  int rows_ahead(Deadline deadline) const;
  void count_saved(std::span<const int16_t> selected);
  bool may_look_beyond(int guess, const DraftRequest& request) const;
  void choose_level(const DraftRequest& request, const Budget& budget,
                    std::span<const int16_t> selected, double spent_ms, int max_nodes);
  Calibration& calibration() { return calibration_[foresight_.drawn() ? 1 : 0]; }
  // Entries of the network's laws as tokens of the target, those without one left out.
  Candidates in_tokens(const Candidates& candidates, int node);
  // The candidates as the draws of their position will have it, the likeliest to be drawn first.
  Candidates foreseen(const Candidates& candidates, uint64_t position);
  bool probe_now(const DraftRequest& request);
  void remember(bool probing, bool paid);

  // One pass over level_, and expand(guess) -> Status for every guess of it.
  template <typename Expand>
  Status look_beyond_level(Expand&& expand_guess, double* milliseconds);
  Status pass_over_level();
  double count_cost(int unread, double milliseconds);
  Status expand(int guess, const DraftRequest& request);
  void add_pruned(int guess, const Candidates& candidates);
  void learn_yield(int depth, double brought);

  // Of a tree that is drawn (model_drafter_sampled.cc).
  struct Drawing;
  Status draw_level(Drawing& drawing);
  void choose_next(Drawing& drawing);
  Status open(int guess, Drawing& drawing);
  Result<int> draw_child(Open& open, Drawing& drawing);

  // Of the share of a guess of that depth that its children leave open: what a look is expected to
  // bring.
  double yield_at(int depth) const;

  struct Yield {
    double brought = 0;
    double looks = 0;
  };

  ModelDrafterOptions options_;
  std::unique_ptr<Drafter> first_;
  DrafterTraits traits_;
  DraftCache cache_;
  CandidateSelector selector_;
  Foresight foresight_;
  uint64_t position_ = 0;                   // tokens since start()
  std::array<Calibration, 2> calibration_;  // of greedy texts, of drawn ones
  std::array<int32_t, Candidates::kMost> named_;
  std::array<int32_t, Candidates::kMost> foreseen_tokens_;
  std::array<float, Candidates::kMost> foreseen_log_q_;
  GuessPool pool_;
  Sampler sampler_;               // the answer's transform, for laws that children are drawn from
  std::vector<int32_t> history_;  // the text in entries of the laws, for the sampler's penalty
  std::vector<Open> open_;        // a heap
  std::array<float, DraftTree::kCapacity + 1> log_mass_{};    // by guess + 1, of what was kept
  std::array<int16_t, DraftTree::kCapacity + 1> shape_of_{};  // by guess + 1: node of the shape
  std::vector<int16_t> level_;           // what the next pass looks beyond, kRoot included
  std::array<Yield, kDepths> yields_{};  // by depth of the guess that was looked beyond
  float latest_entropy_ = 0;             // nats, of the law that was expanded last
  bool looked_ahead_ = false;            // since the latest propose()
  Ahead ahead_ = Ahead::kNone;
  bool kept_ = false;          // the pool is what was found ahead, below the text's end
  bool weighs_passes_ = true;  // not those of look_ahead(), which run beside the target's
  double pace_ahead_ = 1;      // of the passes beside the target's, by the cost curve
  int kept_nodes_ = 0;         // of the cache, that this tree began with
  double saved_ms_ = 0;
  std::array<int16_t, DraftTree::kCapacity> renumbered_{};
  int64_t passes_ = 0;
  int idle_steps_ = 0;  // in which no pass was expected to pay
  int patience_ = 1;    // such steps before one is run all the same
};

template <typename Expand>
Status ModelDrafter::look_beyond_level(Expand&& expand_guess, double* milliseconds) {
  const Clock::time_point begin = Clock::now();
  const int unread = cache_.unread();
  SAPWOOD_TRY(pass_over_level());
  for (const int16_t guess : level_) {
    if (pool_.at(guess).node != GuessPool::kNone) SAPWOOD_TRY(expand_guess(guess));
  }
  pool_.refresh();
  const double cost = count_cost(unread, seconds_since(begin) * 1e3);
  if (milliseconds != nullptr) *milliseconds = cost;
  return Status::okay();
}

}  // namespace sapwood
