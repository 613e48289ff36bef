// Which guesses the next pass looks beyond, and what passes have brought and cost so far.
#include <algorithm>

#include "draft/model_drafter.h"

namespace sapwood {
namespace {

// Of the share that a guess's children leave open, what the model's best new child is expected to
// bring before anything was seen.
constexpr double kFirstYield = 0.6;
constexpr double kYieldPrior = 2;    // looks' worth of trust in what it is a depth above
constexpr double kYieldMemory = 64;  // looks

// Passes that do not pay are tried again after so many steps at most.
constexpr int kMostPatience = 64;

}  // namespace

// No pass is expected to pay. Now and then the root is looked beyond all the same.
bool ModelDrafter::probe_now(const DraftRequest& request) {
  if (++idle_steps_ < patience_ || request.out_of_time() ||
      !may_look_beyond(GuessPool::kRoot, request))
    return false;
  level_.assign(1, int16_t{GuessPool::kRoot});
  return true;
}

// Passes were run, and the step with them is expected to be faster than without, or not.
void ModelDrafter::remember(bool probing, bool paid) {
  patience_ = probing && !paid ? std::min(2 * patience_, kMostPatience) : 1;
  idle_steps_ = 0;
}

bool ModelDrafter::may_look_beyond(int guess, const DraftRequest& request) const {
  const GuessPool::Guess& g = pool_.at(guess);
  if (g.node != GuessPool::kNone || g.depth >= request.max_depth || g.depth > cache_.depth_left()) {
    return false;
  }
  return guess == GuessPool::kRoot || !cache_.network().reads_hidden_states() ||
         (pool_.at(g.parent).node != GuessPool::kNone && cache_.may_add(pool_.at(g.parent).node));
}

// A depth that was never reached is expected to bring what the one above it does.
double ModelDrafter::yield_at(int depth) const {
  double expected = kFirstYield;
  for (int d = 0; d <= std::min(depth, kDepths - 1); ++d) {
    expected = (yields_[d].brought + kYieldPrior * expected) / (yields_[d].looks + kYieldPrior);
  }
  return expected;
}

// The guesses of the best tree so far, likeliest first, as many as raise the expected ratio most.
// A parent is likelier than its children, so none is looked beyond before its parent. A look is
// expected to bring one child, for which the verify pass has a row more.
void ModelDrafter::choose_level(const DraftRequest& request, const Budget& budget,
                                std::span<const int16_t> selected, double spent_ms, int max_nodes) {
  level_.clear();
  if (request.out_of_time()) return;
  const int nodes = static_cast<int>(selected.size());
  const bool first = pool_.at(GuessPool::kRoot).node == GuessPool::kNone;
  const int unread = std::min(cache_.unread(), kUnreadCounted) - (first ? 1 : 0);
  double expected = 1;
  for (const int16_t guess : selected) expected += pool_.at(guess).path_acceptance;
  const double so_far = request.overhead_ms + spent_ms;
  double best = budget.best_ratio();
  size_t chosen = 0;
  for (int i = -1; i < nodes && static_cast<int>(level_.size()) < cache_.max_nodes(); ++i) {
    const int16_t guess = i < 0 ? int16_t{GuessPool::kRoot} : selected[i];
    if (!may_look_beyond(guess, request)) {
      if (first) break;  // nothing below it can be looked beyond either
      continue;
    }
    level_.push_back(guess);
    const GuessPool::Guess& g = pool_.at(guess);
    const double open = std::max(1.0 - pool_.children_acceptance(guess), 0.0);
    expected += g.path_acceptance * open * yield_at(g.depth);
    const int looks = static_cast<int>(level_.size());
    if (nodes + looks > max_nodes) {  // takes the place of the least likely one
      const int displaced = max_nodes - looks;
      if (displaced < 0) break;
      expected -= pool_.at(selected[displaced]).path_acceptance;
    }
    const double cost = so_far + options_.cost.milliseconds(looks + unread) +
                        request.cost->milliseconds(1 + std::min(nodes + looks, max_nodes));
    if (expected / cost > best) {
      best = expected / cost;
      chosen = level_.size();
    }
  }
  level_.resize(chosen);
}

Status ModelDrafter::pass_over_level() {
  for (const int16_t guess : level_) {
    GuessPool::Guess& g = pool_.at(guess);
    g.node = guess == GuessPool::kRoot
                 ? int16_t{DraftTree::kRoot}
                 : static_cast<int16_t>(cache_.add(pool_.at(g.parent).node, g.token));
  }
  ++passes_;
  return cache_.pass();
}

double ModelDrafter::count_cost(int unread, double milliseconds) {
  const int rows = static_cast<int>(level_.size());
  if (options_.learn_costs && weighs_passes_ && unread <= 1) {
    options_.cost.observe(rows, milliseconds);
    traits_.pass_milliseconds = options_.cost.milliseconds(1);
  }
  return options_.cost.milliseconds(rows + std::min(std::max(unread - 1, 0), kUnreadCounted - 1));
}

void ModelDrafter::learn_yield(int depth, double brought) {
  if (!weighs_passes_) return;
  Yield& yield = yields_[std::min(depth, kDepths - 1)];
  if (yield.looks >= kYieldMemory) {
    yield.brought /= 2;
    yield.looks /= 2;
  }
  yield.brought += std::min(brought, 1.0);
  yield.looks += 1;
}

}  // namespace sapwood
