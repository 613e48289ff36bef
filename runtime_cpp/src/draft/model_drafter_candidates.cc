// What the law of a node becomes: candidates by the target's ids, seen with the draws of their
// position, pruned, and guesses of the pool with acceptances.
#include <algorithm>
#include <cmath>
#include <numeric>

#include "draft/model_drafter.h"

namespace sapwood {
namespace {

int rank_class(int rank) { return rank < 2 ? rank : rank < 4 ? 2 : 3; }

}  // namespace

Candidates ModelDrafter::in_tokens(const Candidates& candidates, int node) {
  Candidates named = candidates;
  const std::span<const int32_t> ids = cache_.network().token_ids();
  if (!ids.empty()) {
    // Entries without a token are the least probable of all, so they come last.
    size_t count = 0;
    while (count < candidates.tokens.size() && ids[candidates.tokens[count]] >= 0) {
      named_[count] = ids[candidates.tokens[count]];
      ++count;
    }
    named.tokens = std::span<const int32_t>(named_).first(count);
    named.log_q = candidates.log_q.first(count);
  }
  named.uncertainty = cache_.uncertainty(node);
  return named;
}

Candidates ModelDrafter::foreseen(const Candidates& candidates, uint64_t position) {
  struct Guess {
    int32_t token;
    double probability;
  };
  std::array<Guess, Candidates::kMost> room;
  const std::span<Guess> guesses = std::span<Guess>(room).first(candidates.tokens.size());
  for (size_t i = 0; i < guesses.size(); ++i) {
    guesses[i] = {candidates.tokens[i], std::exp(static_cast<double>(candidates.log_q[i]))};
  }
  foresight_.heat(guesses);
  foresight_.weigh(position, guesses);
  std::sort(guesses.begin(), guesses.end(), [](const Guess& a, const Guess& b) {
    return a.probability != b.probability ? a.probability > b.probability : a.token < b.token;
  });
  double left = 1;
  double entropy = 0;
  const auto add = [&entropy](double p) { entropy -= p > 0 ? p * std::log(p) : 0; };
  for (size_t i = 0; i < guesses.size(); ++i) {
    foreseen_tokens_[i] = guesses[i].token;
    foreseen_log_q_[i] = static_cast<float>(std::log(std::max(guesses[i].probability, 1e-9)));
    left -= guesses[i].probability;
    add(guesses[i].probability);
  }
  add(left);
  return {std::span<const int32_t>(foreseen_tokens_).first(guesses.size()),
          std::span<const float>(foreseen_log_q_).first(guesses.size()),
          static_cast<float>(entropy), candidates.uncertainty};
}

Status ModelDrafter::expand(int guess, const DraftRequest& request) {
  const int16_t node = pool_.at(guess).node;
  const bool budgeted = request.growth == Growth::kBudgeted;
  const int width = std::min(request.max_width, Candidates::kMost);
  const Result<Candidates> found = selector_.select(
      cache_.logits(node), {}, budgeted && request.looks_ahead ? int{Candidates::kMost} : width);
  if (!found.ok()) return found.status();
  const Candidates named = in_tokens(found.value(), node);
  const Candidates all =
      foresight_.drawn() ? foreseen(named, position_ + static_cast<uint64_t>(pool_.at(guess).depth))
                         : named;
  const Candidates candidates = all.first(width);
  latest_entropy_ = candidates.entropy;
  std::array<int, Candidates::kMost> kept;  // ranks
  int kept_count = candidates.size();
  if (budgeted && request.pruning != nullptr) {
    const TraceSpan span(request.trace, request.pruning_event());
    kept_count = request.pruning->select(cache_.nodes(), node, candidates, kept);
  } else {
    std::iota(kept.begin(), kept.begin() + kept_count, 0);
  }
  double mass = 0;
  for (int i = 0; i < kept_count; ++i) mass += std::exp(candidates.log_q[kept[i]]);
  const bool pruned = kept_count < candidates.size();
  const float log_weight = pruned ? static_cast<float>(-std::log(std::min(mass, 1.0))) : 0.f;

  // What the first drafter named here, unless the model names it too.
  const double covered = pool_.children_acceptance(guess);
  for (int c = pool_.at(guess).first_child; c != GuessPool::kNone; c = pool_.at(c).next_sibling) {
    pool_.at(c).of_class = kUnnamed;
    pool_.at(c).probability = pool_.at(c).acceptance;
  }
  const int before = pool_.size();
  for (const int rank : std::span<const int>(kept).first(static_cast<size_t>(kept_count))) {
    int child = pool_.find_child(guess, candidates.tokens[rank]);
    const bool agreed = child != GuessPool::kNone;
    if (!agreed) child = pool_.add(guess, candidates.tokens[rank], 0.f);
    if (child == GuessPool::kNone) break;
    GuessPool::Guess& g = pool_.at(child);
    g.of_class = static_cast<int16_t>((agreed ? kAgreed : kNamed) + rank_class(rank));
    g.log_q = candidates.log_q[rank];
    g.log_q_kept = candidates.log_q[rank] + log_weight;
    g.probability = std::max(std::exp(g.log_q), g.probability);
  }

  double together = 0;
  for (int c = pool_.at(guess).first_child; c != GuessPool::kNone; c = pool_.at(c).next_sibling) {
    GuessPool::Guess& g = pool_.at(c);
    g.acceptance = static_cast<float>(calibration().estimate(g.of_class, g.probability));
    together += g.acceptance;
  }
  double best_new = 0;
  for (int c = pool_.at(guess).first_child; c != GuessPool::kNone; c = pool_.at(c).next_sibling) {
    GuessPool::Guess& g = pool_.at(c);
    if (together > kMostTogether) {
      g.acceptance *= static_cast<float>(kMostTogether / together);
    }
    if (c >= before) best_new = std::max<double>(best_new, g.acceptance);
  }
  learn_yield(pool_.at(guess).depth, best_new / std::max(1.0 - covered, 0.02));
  if (budgeted && request.looks_ahead) add_pruned(guess, all);
  return Status::okay();
}

// The target may pick what no tree is given: where it leaves the tree is where the next one begins.
void ModelDrafter::add_pruned(int guess, const Candidates& candidates) {
  for (int rank = 0; rank < candidates.size(); ++rank) {
    if (pool_.find_child(guess, candidates.tokens[rank]) != GuessPool::kNone) continue;
    const int child = pool_.add(guess, candidates.tokens[rank], 0.f);
    if (child == GuessPool::kNone) return;
    GuessPool::Guess& g = pool_.at(child);
    g.pruned = true;
    g.log_q = g.log_q_kept = candidates.log_q[rank];
    g.probability = std::exp(g.log_q);
  }
}

}  // namespace sapwood
