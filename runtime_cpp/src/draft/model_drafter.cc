#include "draft/model_drafter.h"

#include <algorithm>
#include <utility>

#include "draft/model_network.h"
#include "tree/controller.h"

namespace sapwood {
namespace {

// What the first drafter of a cascade has to promise for its tree to stand where there is no budget
// to weigh it: chains, fixed shapes and drawn trees.
constexpr double kConfident = 0.5;

// By GuessClass.
constexpr std::array<double, kGuessClasses> kFirstPromise = {0.9, 0.8, 0.8, 0.8,  // the model's
                                                             1.0, 0.9, 0.9, 0.9,  // both
                                                             0.6, 0.8, 0.5};

}  // namespace

ModelDrafter::ModelDrafter(std::string_view name, std::unique_ptr<DraftNetwork> network,
                           const ModelDrafterOptions& options, std::unique_ptr<Drafter> first)
    : options_(options),
      first_(std::move(first)),
      traits_{.name = name,
              .gives_proposals = true,
              .pass_milliseconds = options.cost.milliseconds(1),
              .one_pass_per_level = true,
              .vocabulary_size = network->vocabulary_size(),
              .context_length = network->context_length(),
              .hidden_layers = network->hidden_layers()},
      cache_(std::move(network), options.max_level, options.memory),
      selector_(cache_.network().law_size()),
      calibration_{Calibration(kFirstPromise), Calibration(kFirstPromise)},
      sampler_(cache_.network().law_size()) {
  open_.reserve(DraftTree::kCapacity + 1);
  level_.reserve(DraftTree::kCapacity + 1);
}

ModelDrafter::ModelDrafter(std::string_view name, std::shared_ptr<Model> model,
                           const ModelDrafterOptions& options, std::unique_ptr<Drafter> first)
    : ModelDrafter(name, std::make_unique<ModelNetwork>(std::move(model)), options,
                   std::move(first)) {}

void ModelDrafter::foresee(const TargetDraws& draws) {
  foresight_.start(draws);
  if (first_ != nullptr) first_->foresee(draws);
}

Status ModelDrafter::start(std::span<const int32_t> tokens, int max_tokens) {
  pool_.clear();
  kept_ = looked_ahead_ = false;
  ahead_ = Ahead::kNone;
  position_ = 0;
  if (first_ != nullptr) SAPWOOD_TRY(first_->start(tokens, max_tokens));
  history_.reserve(max_tokens);
  return cache_.set_text(tokens, max_tokens);
}

void ModelDrafter::follow(std::span<const int32_t> tokens) {
  int guess = GuessPool::kRoot;
  for (const int32_t token : tokens) {
    if (guess == GuessPool::kNone) break;
    if (pool_.at(guess).node == GuessPool::kNone) {
      guess = GuessPool::kNone;
      break;
    }
    // All that were weighed count, also those that did not get into the tree.
    for (int c = pool_.at(guess).first_child; c != GuessPool::kNone; c = pool_.at(c).next_sibling) {
      const GuessPool::Guess& child = pool_.at(c);
      if (child.pruned) continue;
      calibration().observe(child.of_class, child.probability, child.token == token);
      // A child that is drawn is judged only if those before it were rejected.
      if (child.of_class >= kDrawn && child.token == token) break;
    }
    guess = pool_.find_child(guess, token);
  }
  position_ += tokens.size();
  kept_ = looked_ahead_ && guess >= 0 && pool_.at(guess).node >= 0;
  ahead_ = !looked_ahead_ ? Ahead::kNone : kept_ ? Ahead::kKept : Ahead::kDiscarded;
  looked_ahead_ = false;
  if (kept_) {
    cache_.append_keeping(tokens, pool_.at(guess).node, renumbered_);
    pool_.make_root(guess, renumbered_);
  } else {
    pool_.clear();
    cache_.append(tokens);
  }
  if (first_ != nullptr) first_->follow(tokens);
}

void ModelDrafter::observe(const VerifiedRows& rows) {
  if (first_ != nullptr) first_->observe(rows);
  const size_t size = static_cast<size_t>(cache_.network().hidden_state_size());
  if (size == 0) return;
  int node = DraftTree::kRoot;
  int position = static_cast<int>(rows.text.size()) - 1;
  for (const int32_t token : rows.emitted) {
    if (node == DraftTree::kNone) return;
    const Status taken = cache_.take_states(
        position++, rows.hidden_states.subspan(static_cast<size_t>(node + 1) * size, size));
    if (!taken.ok()) return;  // the cache knows that it lacks them, and nothing is drafted
    node = rows.tree.find_child(node, token);
  }
}

Status ModelDrafter::propose(const DraftRequest& request, DraftTree& tree) {
  const int max_nodes = std::min(request.max_nodes, DraftTree::kCapacity);
  saved_ms_ = 0;
  looked_ahead_ = false;
  if (max_nodes < 1 || request.max_depth < 1) return Status::okay();
  const bool kept = std::exchange(kept_, false) && request.growth == Growth::kBudgeted;
  if (!kept) {
    pool_.clear();
    cache_.begin_tree();
  }
  kept_nodes_ = kept ? cache_.nodes().size() : DraftTree::kRoot;
  if (first_ != nullptr) {
    SAPWOOD_TRY(first_->propose(request, tree));
    if (request.growth != Growth::kBudgeted) {
      if (is_confident(tree)) return Status::okay();
    } else {
      add_first(tree, kept);
    }
    tree.clear();
  }
  switch (request.growth) {
    case Growth::kChain:
      return grow_chain(request, max_nodes, tree);
    case Growth::kShape:
      return request.shape == nullptr ? Status::okay() : grow_shape(request, max_nodes, tree);
    case Growth::kBudgeted:
      return request.cost == nullptr ? Status::okay() : grow_budgeted(request, max_nodes, tree);
  }
  return Status::okay();
}

// What was found ahead may hold some of it already: it is then worth what the more hopeful says.
void ModelDrafter::add_first(const DraftTree& tree, bool kept) {
  std::array<int, DraftTree::kCapacity> guess_of;
  const auto parent_of = [&](int v) {
    return tree.parent(v) == DraftTree::kRoot ? int{GuessPool::kRoot} : guess_of[tree.parent(v)];
  };
  for (int v = 0; v < tree.size(); ++v) {
    const int parent = parent_of(v);
    guess_of[v] = GuessPool::kNone;
    if (parent == GuessPool::kNone) continue;
    if (kept) guess_of[v] = pool_.find_child(parent, tree.token(v));
    if (guess_of[v] != GuessPool::kNone) {
      GuessPool::Guess& known = pool_.at(guess_of[v]);
      known.acceptance = std::max(known.acceptance, tree.acceptance(v));
      known.pruned = false;
      continue;
    }
    guess_of[v] = pool_.add(parent, tree.token(v), tree.acceptance(v));
    if (guess_of[v] == GuessPool::kNone) continue;
    GuessPool::Guess& added = pool_.at(guess_of[v]);
    added.log_q = tree.log_q(v);
    added.log_q_kept = tree.log_q_kept(v);
    added.of_class = kUnnamed;
    added.probability = added.acceptance;
  }
  if (!kept) return;
  for (int v = 0; v < tree.size(); ++v) {
    const int parent = parent_of(v);
    if (parent == GuessPool::kNone) continue;
    const double all = pool_.children_acceptance(parent);
    if (all <= kMostTogether) continue;
    for (int c = pool_.at(parent).first_child; c != GuessPool::kNone;
         c = pool_.at(c).next_sibling) {
      pool_.at(c).acceptance *= static_cast<float>(kMostTogether / all);
    }
  }
  pool_.refresh();
}

// One of the root's children is as likely to come as not.
bool ModelDrafter::is_confident(const DraftTree& tree) const {
  double likely = 0;
  for (int c = tree.first_child(DraftTree::kRoot); c != DraftTree::kNone;
       c = tree.next_sibling(c)) {
    likely += tree.acceptance(c);
  }
  return likely >= kConfident;
}

Status ModelDrafter::grow_chain(const DraftRequest& request, int max_nodes, DraftTree& tree) {
  const auto ranked = [&](int guess) { return expand(guess, request); };
  int guess = GuessPool::kRoot;
  int length = max_nodes;
  while (tree.size() < length && may_look_beyond(guess, request) && !request.out_of_time()) {
    level_.assign(1, static_cast<int16_t>(guess));
    SAPWOOD_TRY(look_beyond_level(ranked, nullptr));
    if (request.length_by_entropy && tree.empty()) {
      length = std::min(length, draft_length(latest_entropy_));
    }
    guess = pool_.child(guess, 0);
    if (guess == GuessPool::kNone) break;
    const GuessPool::Guess& found = pool_.at(guess);
    tree.add(tree.size() - 1, found.token, found.log_q, found.log_q_kept, found.acceptance);
  }
  return Status::okay();
}

Status ModelDrafter::grow_shape(const DraftRequest& request, int max_nodes, DraftTree& tree) {
  const auto ranked = [&](int guess) { return expand(guess, request); };
  // Shape node -> guess; candidates that do not exist leave a gap with all below it.
  std::array<int16_t, DraftTree::kCapacity> placed;
  placed.fill(GuessPool::kNone);
  const auto nodes = request.shape->nodes().first(
      std::min<size_t>(request.shape->nodes().size(), static_cast<size_t>(max_nodes)));
  const auto guess_of = [&](int16_t node) {
    return node == DraftTree::kRoot ? int16_t{GuessPool::kRoot} : placed[node];
  };
  while (!request.out_of_time()) {
    level_.clear();
    for (const TreeShape::Node& node : nodes) {
      const int16_t parent = guess_of(node.parent);
      if (parent == GuessPool::kNone || !may_look_beyond(parent, request)) continue;
      const bool known = std::find(level_.begin(), level_.end(), parent) != level_.end();
      if (!known && static_cast<int>(level_.size()) < cache_.max_nodes()) level_.push_back(parent);
    }
    if (level_.empty()) break;
    SAPWOOD_TRY(look_beyond_level(ranked, nullptr));
    for (size_t i = 0; i < nodes.size(); ++i) {
      const int16_t parent = guess_of(nodes[i].parent);
      if (parent == GuessPool::kNone || placed[i] != GuessPool::kNone) continue;
      placed[i] = static_cast<int16_t>(pool_.child(parent, nodes[i].rank));
    }
  }
  level_.clear();
  for (size_t i = 0; i < nodes.size(); ++i) {
    if (placed[i] != GuessPool::kNone) level_.push_back(placed[i]);
  }
  pool_.build(level_, tree);
  return Status::okay();
}

Status ModelDrafter::grow_budgeted(const DraftRequest& request, int max_nodes, DraftTree& tree) {
  const auto ranked = [&](int guess) { return expand(guess, request); };
  double spent_ms = 0;
  double ratio_without = 0;  // tokens per millisecond of not asking the model at all
  bool probing = false;
  for (bool looked = false;; looked = true) {
    Budget budget(*request.cost, request.overhead_ms + spent_ms, max_nodes);
    std::span<const int16_t> selected = pool_.select(budget);
    selected = selected.first(static_cast<size_t>(budget.best_nodes()));
    choose_level(request, budget, selected, spent_ms, max_nodes);
    if (!looked) {
      ratio_without = budget.best_ratio();
      probing = level_.empty() && probe_now(request);
    }
    if (level_.empty()) {
      if (looked) remember(probing, budget.best_ratio() > ratio_without);
      count_saved(selected);
      pool_.build(selected, tree);
      return Status::okay();
    }
    double pass_ms = 0;
    SAPWOOD_TRY(look_beyond_level(ranked, &pass_ms));
    spent_ms += pass_ms;
  }
}

}  // namespace sapwood
