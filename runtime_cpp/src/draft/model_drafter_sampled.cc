// Trees that are drawn: a level at a time, children without replacement from the model's law after
// the answer's transform and the controller's truncation (MATH.md, sections 3 and 4).
//
// Which node draws next, whether it draws once more and which are looked beyond is decided by what
// was drawn so far; nothing that was drawn is dropped.
#include <algorithm>
#include <cmath>

#include "draft/model_drafter.h"
#include "tree/controller.h"

namespace sapwood {

// A guess of the pool is the node of the tree with the same number.
struct ModelDrafter::Drawing {
  const DraftRequest& request;
  Chance& chance;
  DraftTree& tree;
  Proposals& proposals;
  int max_nodes;
  int max_depth;
  double spent_ms = 0;
  double ratio_without = 0;  // tokens per millisecond of not asking the model at all
  bool probing = false;
  bool looked = false;

  bool may_grow() const { return tree.size() < max_nodes; }
};

Status ModelDrafter::propose_sampled(const DraftRequest& request, Chance& chance, DraftTree& tree,
                                     Proposals& proposals) {
  Drawing drawing{.request = request,
                  .chance = chance,
                  .tree = tree,
                  .proposals = proposals,
                  .max_nodes = std::min(request.max_nodes, DraftTree::kCapacity),
                  .max_depth = request.max_depth};
  if (drawing.max_nodes < 1 || request.max_depth < 1) return Status::okay();
  if (request.growth == Growth::kShape && request.shape == nullptr) return Status::okay();
  if (request.growth == Growth::kBudgeted && request.cost == nullptr) return Status::okay();
  kept_ = looked_ahead_ = false;
  pool_.clear();
  cache_.begin_tree();
  if (first_ != nullptr) {
    // Who draws is decided by a tree that was not drawn.
    SAPWOOD_TRY(first_->propose(request, tree));
    const bool confident = is_confident(tree);
    tree.clear();
    if (confident) return first_->propose_sampled(request, chance, tree, proposals);
  }
  history_.clear();
  if (request.sampling.repetition_penalty != 1.f) {
    for (const int32_t token : cache_.text()) {
      const int entry = cache_.network().entry_of(token);
      if (entry >= 0) history_.push_back(entry);
    }
  }
  SAPWOOD_TRY(sampler_.start(request.sampling, history_));
  open_.clear();
  shape_of_[0] = DraftTree::kRoot;
  for (;; drawing.looked = true) {
    choose_next(drawing);
    if (level_.empty()) return Status::okay();
    double pass_ms = 0;
    SAPWOOD_TRY(look_beyond_level([&](int guess) { return open(guess, drawing); }, &pass_ms));
    drawing.spent_ms += pass_ms;
    SAPWOOD_TRY(draw_level(drawing));
  }
}

// What is looked beyond next, into level_.
void ModelDrafter::choose_next(Drawing& drawing) {
  const DraftRequest& request = drawing.request;
  level_.clear();
  if (!drawing.may_grow() || request.out_of_time()) return;
  if (request.growth == Growth::kBudgeted) {
    Budget budget(*request.cost, request.overhead_ms + drawing.spent_ms, drawing.max_nodes);
    for (int v = 0; v < pool_.size(); ++v) budget.add(pool_.at(v).path_acceptance);
    choose_level(request, budget, pool_.by_path_acceptance(), drawing.spent_ms, drawing.max_nodes);
    if (!drawing.looked) {
      drawing.ratio_without = budget.best_ratio();
      drawing.probing = level_.empty() && probe_now(request);
    } else if (level_.empty()) {
      remember(drawing.probing, budget.best_ratio() > drawing.ratio_without);
    }
    return;
  }
  const auto has_children = [&](int guess) {
    if (request.growth == Growth::kChain) return guess == pool_.size() - 1;
    const auto nodes = request.shape->nodes();
    return std::any_of(nodes.begin(), nodes.end(), [&](const TreeShape::Node& node) {
      return node.parent == shape_of_[guess + 1];
    });
  };
  for (int guess = GuessPool::kRoot; guess < pool_.size(); ++guess) {
    if (pool_.at(guess).depth < drawing.max_depth && may_look_beyond(guess, request) &&
        has_children(guess) && static_cast<int>(level_.size()) < cache_.max_nodes()) {
      level_.push_back(static_cast<int16_t>(guess));
    }
  }
}

// The law that the guess's children are drawn from.
Status ModelDrafter::open(int guess, Drawing& drawing) {
  const DraftRequest& request = drawing.request;
  const int16_t node = pool_.at(guess).node;
  const int mark = sampler_.mark();
  if (request.sampling.repetition_penalty != 1.f) {
    for (int v = guess; v != GuessPool::kRoot; v = pool_.at(v).parent) {
      sampler_.push(cache_.network().entry_of(pool_.at(v).token));
    }
  }
  const Result<TokenLaw> law = sampler_.law(cache_.logits(node));
  sampler_.rewind(mark);
  if (!law.ok()) return law.status();
  const Result<Candidates> found = selector_.select(law->log_p, law->tokens, Proposals::kMaxKept);
  if (!found.ok()) return found.status();
  const Candidates candidates = in_tokens(found.value(), node);
  if (guess == GuessPool::kRoot && request.length_by_entropy) {
    drawing.max_depth = std::min(drawing.max_depth, draft_length(candidates.entropy));
  }
  std::array<int, Candidates::kMost> ranks;
  int kept = candidates.size();
  for (int i = 0; i < kept; ++i) ranks[i] = i;
  if (kept > 0 && request.pruning != nullptr) {
    const TraceSpan span(request.trace, request.pruning_event());
    kept = request.pruning->select(drawing.tree, guess, candidates, ranks);
  }
  if (kept == 0) return Status::okay();
  std::array<int32_t, Candidates::kMost> tokens;
  std::array<float, Candidates::kMost> log_q;
  double mass = 0;
  for (int i = 0; i < kept; ++i) {
    tokens[i] = candidates.tokens[ranks[i]];
    log_q[i] = candidates.log_q[ranks[i]];
    mass += std::exp(static_cast<double>(log_q[i]));
  }
  const size_t n = static_cast<size_t>(kept);
  if (!drawing.proposals.set(guess, {tokens.data(), n}, {log_q.data(), n})) {
    return Status(Code::kInternal, "a drafting model's candidates are no distribution");
  }
  log_mass_[guess + 1] = static_cast<float>(std::log(mass));
  const float certainty = 1.f - uncertainty_of(candidates, ControllerOptions());
  const float acceptance = static_cast<float>(calibration().estimate(kDrawn, certainty));
  learn_yield(pool_.at(guess).depth, acceptance);
  open_.push_back({pool_.at(guess).path_acceptance * acceptance, 1.f, acceptance, certainty,
                   static_cast<int16_t>(guess)});
  std::push_heap(open_.begin(), open_.end());
  return Status::okay();
}

Status ModelDrafter::draw_level(Drawing& drawing) {
  const DraftRequest& request = drawing.request;
  if (request.growth != Growth::kBudgeted) {
    for (Open& open : open_) {
      const auto nodes = request.growth == Growth::kShape ? request.shape->nodes()
                                                          : std::span<const TreeShape::Node>();
      for (size_t i = 0; i < nodes.size() && drawing.may_grow(); ++i) {
        if (nodes[i].parent != shape_of_[open.guess + 1]) continue;
        const Result<int> child = draw_child(open, drawing);
        if (!child.ok()) return child.status();
        if (child.value() == GuessPool::kNone) break;
        shape_of_[child.value() + 1] = static_cast<int16_t>(i);
      }
      if (request.growth == Growth::kChain && drawing.may_grow()) {
        const Result<int> child = draw_child(open, drawing);
        if (!child.ok()) return child.status();
      }
    }
    open_.clear();
    return Status::okay();
  }
  Budget budget(*request.cost, request.overhead_ms + drawing.spent_ms, drawing.max_nodes);
  for (int v = 0; v < pool_.size(); ++v) budget.add(pool_.at(v).path_acceptance);
  while (!open_.empty() && drawing.may_grow() && budget.wants(open_.front().value)) {
    std::pop_heap(open_.begin(), open_.end());
    Open best = open_.back();
    open_.pop_back();
    const float value = best.value;
    const Result<int> child = draw_child(best, drawing);
    if (!child.ok()) return child.status();
    if (child.value() == GuessPool::kNone) continue;
    budget.add(value);
    if (drawing.proposals.drawn(best.guess) < request.max_width) {
      open_.push_back(best);
      std::push_heap(open_.begin(), open_.end());
    }
  }
  return Status::okay();
}

// One more child, or GuessPool::kNone when nothing is left to draw; `open` is then what the next
// one is expected to bring.
Result<int> ModelDrafter::draw_child(Open& open, Drawing& drawing) {
  const bool later = drawing.proposals.drawn(open.guess) > 0;
  const int entry = drawing.proposals.draw(open.guess, drawing.chance);
  if (entry < 0) return GuessPool::kNone;
  const int32_t token = drawing.proposals.at(open.guess).tokens[entry];
  const float log_q_kept = drawing.proposals.log_q(open.guess, entry);
  const float log_q = log_q_kept + log_mass_[open.guess + 1];
  const float next = open.reached * open.acceptance;
  const int child = drawing.tree.add(open.guess, token, log_q, log_q_kept, next);
  if (child == DraftTree::kNone || pool_.add(open.guess, token, next) != child) {
    return Status(Code::kInternal, "a drafting model's candidates hold the same token twice");
  }
  GuessPool::Guess& guess = pool_.at(child);
  guess.of_class = later ? kDrawnLater : kDrawn;
  guess.probability = open.certainty;
  guess.log_q = log_q;
  guess.log_q_kept = log_q_kept;
  open.reached *= 1.f - open.acceptance;
  open.acceptance = static_cast<float>(calibration().estimate(kDrawnLater, open.certainty));
  open.value = pool_.at(open.guess).path_acceptance * open.reached * open.acceptance;
  return child;
}

}  // namespace sapwood
