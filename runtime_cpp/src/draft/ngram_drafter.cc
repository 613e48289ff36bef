#include "draft/ngram_drafter.h"

#include <algorithm>
#include <cmath>

namespace sapwood {
namespace {

// Siblings exclude each other, so their acceptances cannot add up to more than this.
constexpr double kMostTogether = 0.98;

// What longer contexts have left for shorter ones, below which these are not looked at: no guess of
// theirs could pay for a row.
constexpr double kLeastLeft = 0.02;

// A guess less probable than this cannot pay for a row. Where tokens are drawn it can: the draw may
// favour it (draft/foresight.h).
constexpr double kLeastProbability = 0.005;

}  // namespace

const DrafterTraits& NgramDrafter::traits() const {
  static const DrafterTraits kTraits{.name = "ngram", .gives_proposals = true};
  return kTraits;
}

Status NgramDrafter::start(std::span<const int32_t> tokens, int max_tokens) {
  const int capacity = std::clamp(max_tokens, 2, kMaxTokens);
  if (!automaton_.has_value() || automaton_->capacity() < capacity) {
    automaton_.emplace(capacity);
    successor_.resize(static_cast<size_t>(DraftTree::kCapacity + 1) * TreeGrower::kMaxWidth);
  }
  automaton_->clear();
  for (const int32_t token : tokens) automaton_->append(token);
  position_ = 0;
  return Status::okay();
}

void NgramDrafter::follow(std::span<const int32_t> tokens) {
  Guesses guesses;
  AcceptanceTable& seen = acceptance_[foresight_.drawn() ? 1 : 0];
  for (const int32_t token : tokens) {
    // What would have been guessed here, drafted or not: the estimates stay honest while nothing is
    // drafted, which is how drafting finds its way back.
    const int n = guess(present(), TreeGrower::kMaxWidth, guesses);
    for (int i = 0; i < n; ++i) {
      seen.observe(guesses[i].matched, guesses[i].probability, guesses[i].token == token);
    }
    automaton_->append(token);
    ++position_;
  }
}

NgramDrafter::Context NgramDrafter::present() const {
  const int state = automaton_->longest_seen_suffix();
  return {state, automaton_->length(state), position_};
}

NgramDrafter::Context NgramDrafter::advance(const Context& context, int32_t token) const {
  int matched = context.matched;
  for (int state = context.state; state != SuffixAutomaton::kNoState;
       state = automaton_->link(state)) {
    matched = std::min(matched, automaton_->length(state));
    const int next = automaton_->next(state, token);
    if (next != SuffixAutomaton::kNoState) return {next, matched + 1, context.position + 1};
  }
  return {SuffixAutomaton::kInitial, 0, context.position + 1};
}

int NgramDrafter::guess(const Context& context, int width, Guesses& guesses) const {
  const SuffixAutomaton& automaton = *automaton_;
  int n = 0;
  double left = 1.0;  // probability that no longer context has spent
  int state = context.state;
  int matched = context.matched;
  for (int looked = 0;
       looked < kMaxContexts && state != SuffixAutomaton::kInitial && left >= kLeastLeft;
       ++looked) {
    const double all = automaton.follows(state) + automaton.degree(state);
    int seen = 0;
    for (int e = automaton.first_edge(state); e != SuffixAutomaton::kNoEdge && seen < kMaxEdges;
         e = automaton.edge(e).next, ++seen) {
      const SuffixAutomaton::Edge& edge = automaton.edge(e);
      const double probability = left * edge.count / all;
      const auto end = guesses.begin() + n;
      const auto known = std::find_if(
          guesses.begin(), end, [&](const Guess& guess) { return guess.token == edge.token; });
      if (known != end) {
        known->probability += probability;
      } else if (n < TreeGrower::kMaxWidth) {
        guesses[n++] = {
            edge.token, matched, probability, 0, {edge.to, matched + 1, context.position + 1}};
      }
    }
    if (all > 0) left *= automaton.degree(state) / all;
    state = automaton.link(state);
    matched = automaton.length(state);
  }
  if (!foresight_.drawn()) {
    n = static_cast<int>(
        std::remove_if(guesses.begin(), guesses.begin() + n,
                       [](const Guess& guess) { return guess.probability < kLeastProbability; }) -
        guesses.begin());
  }
  foresight_.weigh(context.position, std::span<Guess>(guesses).first(n));
  const AcceptanceTable& seen = acceptance();
  double together = 0;
  for (int i = 0; i < n; ++i) {
    guesses[i].acceptance = seen.estimate(guesses[i].matched, guesses[i].probability);
    together += guesses[i].acceptance;
  }
  for (int i = 0; together > kMostTogether && i < n; ++i) {
    guesses[i].acceptance *= kMostTogether / together;
  }
  // Insertion sort: stable, so that of equals the one with the longer context, then the later one,
  // stays in front; and there are few.
  for (int i = 1; i < n; ++i) {
    const Guess moving = guesses[i];
    int at = i;
    for (; at > 0 && guesses[at - 1].acceptance < moving.acceptance; --at) {
      guesses[at] = guesses[at - 1];
    }
    guesses[at] = moving;
  }
  return std::min(n, width);
}

int NgramDrafter::look_up(const DraftTree&, int node, std::span<Candidate> out) {
  if (!automaton_.has_value()) return 0;  // before start() there is no text to draft from
  Guesses guesses;
  const Context context = node == DraftTree::kRoot ? present() : context_of_[node];
  const int n = guess(context, static_cast<int>(out.size()), guesses);
  for (int i = 0; i < n; ++i) {
    const Guess& guess = guesses[i];
    out[i] = {guess.token, static_cast<float>(std::log(guess.probability)),
              static_cast<float>(guess.acceptance)};
    contexts_of(node)[i] = guess.then;
  }
  return n;
}

void NgramDrafter::added(const DraftTree& tree, int node, int rank) {
  context_of_[node] = contexts_of(tree.parent(node))[rank];
}

}  // namespace sapwood
