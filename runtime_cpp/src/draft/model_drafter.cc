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
  position_ = 0;
  if (first_ != nullptr) SAPWOOD_TRY(first_->start(tokens, max_tokens));
  history_.reserve(max_tokens);
  return cache_.set_text(tokens, max_tokens);
}

void ModelDrafter::follow(std::span<const int32_t> tokens) {
  int guess = GuessPool::kRoot;
  for (const int32_t token : tokens) {
    if (guess == GuessPool::kNone || pool_.at(guess).node == GuessPool::kNone) break;
    // All that were weighed count, also those that did not get into the tree.
    for (int c = pool_.at(guess).first_child; c != GuessPool::kNone; c = pool_.at(c).next_sibling) {
      const GuessPool::Guess& child = pool_.at(c);
      calibration().observe(child.of_class, child.probability, child.token == token);
      // A child that is drawn is judged only if those before it were rejected.
      if (child.of_class >= kDrawn && child.token == token) break;
    }
    guess = pool_.find_child(guess, token);
  }
  pool_.clear();
  position_ += tokens.size();
  cache_.append(tokens);
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
  if (max_nodes < 1 || request.max_depth < 1) return Status::okay();
  pool_.clear();
  cache_.begin_tree();
  if (first_ != nullptr) {
    SAPWOOD_TRY(first_->propose(request, tree));
    if (request.growth != Growth::kBudgeted) {
      if (is_confident(tree)) return Status::okay();
    } else {
      for (int v = 0; v < tree.size(); ++v) {
        const int guess = pool_.add(tree.parent(v), tree.token(v), tree.acceptance(v));
        pool_.at(guess).log_q = tree.log_q(v);
        pool_.at(guess).log_q_kept = tree.log_q_kept(v);
      }
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
  while (tree.size() < length && may_look_beyond(guess, request)) {
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
  for (;;) {
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
      pool_.build(selected, tree);
      return Status::okay();
    }
    double pass_ms = 0;
    SAPWOOD_TRY(look_beyond_level(ranked, &pass_ms));
    spent_ms += pass_ms;
  }
}

}  // namespace sapwood
