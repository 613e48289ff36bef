#include "draft/mix_drafter.h"

#include <algorithm>
#include <cmath>

namespace sapwood {
namespace {

constexpr int kBands = Calibration::kBands + 1;  // 0: said nothing
constexpr double kPriorTrials = 6;
constexpr double kMemory = 256;
constexpr double kDepthPrior = 20;  // predicted tokens' worth of trust in the prediction

int band_of(float acceptance) { return acceptance > 0 ? 1 + Calibration::band_of(acceptance) : 0; }

}  // namespace

MixDrafter::MixDrafter(const NgramTable* saved)
    : successor_(saved),
      opinions_(2 * static_cast<size_t>(kBands) * kBands),
      successor_of_(static_cast<size_t>(DraftTree::kCapacity + 1) * TreeGrower::kMaxWidth) {}

const DrafterTraits& MixDrafter::traits() const {
  static const DrafterTraits kTraits{.name = "mix", .gives_proposals = true};
  return kTraits;
}

void MixDrafter::foresee(const TargetDraws& draws) {
  drawn_ = draws.temperature > 0 ? 1 : 0;
  ngram_.foresee(draws);
  successor_.foresee(draws);
}

Status MixDrafter::start(std::span<const int32_t> tokens, int max_tokens) {
  SAPWOOD_TRY(ngram_.start(tokens, max_tokens));
  return successor_.start(tokens, max_tokens);
}

int MixDrafter::cell_of(const Guess& guess) const {
  return drawn_ * kBands * kBands + band_of(guess.by_ngram) * kBands + band_of(guess.by_successor);
}

double MixDrafter::together(const Guess& guess) const {
  const Cell& cell = opinions_[cell_of(guess)];
  const double larger = std::max(guess.by_ngram, guess.by_successor);
  if (!(larger > 0)) return 0;  // neither expects it, and nothing to scale
  // The cell's guesses were worth this much of what the larger source said of them.
  const double worth = (cell.came + kPriorTrials * larger) / (cell.prior + kPriorTrials * larger);
  return std::min(larger * worth, 1.0);
}

int MixDrafter::guess(const Context& context, Guesses& guesses) const {
  NgramDrafter::Guesses by_ngram;
  SuccessorDrafter::Guesses by_successor;
  const int ngrams = ngram_.guess(context.ngram, TreeGrower::kMaxWidth, by_ngram);
  const int successors = successor_.guess(context.successor, by_successor);
  int n = 0;
  // Room is kept for all successors; the n-grams that may have to go are the least likely ones.
  for (int i = 0; i < std::min(ngrams, TreeGrower::kMaxWidth - successors); ++i) {
    guesses[n++] = {by_ngram[i].token,
                    static_cast<float>(by_ngram[i].probability),
                    static_cast<float>(by_ngram[i].acceptance),
                    0,
                    0,
                    by_ngram[i].then};
  }
  const auto end = guesses.begin() + n;
  for (int i = 0; i < successors; ++i) {
    const SuccessorDrafter::Guess& other = by_successor[i];
    const auto known =
        std::find_if(guesses.begin(), end, [&](const Guess& g) { return g.token == other.token; });
    if (known != end) {
      known->by_successor = other.acceptance;
      known->probability = std::max(known->probability, static_cast<float>(other.probability));
    } else {
      guesses[n++] = {other.token, static_cast<float>(other.probability), 0, other.acceptance, 0,
                      {}};
    }
  }
  float all = 0;
  for (int i = 0; i < n; ++i) {
    guesses[i].acceptance = static_cast<float>(together(guesses[i]));
    all += guesses[i].acceptance;
  }
  for (int i = 0; all > kMostTogether && i < n; ++i) {
    guesses[i].acceptance *= kMostTogether / all;
  }
  // Insertion sort: stable, so that of equals the n-gram's with the longer context is in front.
  for (int i = 1; i < n; ++i) {
    const Guess moving = guesses[i];
    int at = i;
    for (; at > 0 && guesses[at - 1].acceptance < moving.acceptance; --at) {
      guesses[at] = guesses[at - 1];
    }
    guesses[at] = moving;
  }
  return n;
}

void MixDrafter::follow(std::span<const int32_t> tokens) {
  Guesses guesses;
  for (size_t i = 0; i < tokens.size(); ++i) {
    const int n = guess(present(), guesses);
    for (int g = 0; g < n; ++g) {
      Cell& cell = opinions_[cell_of(guesses[g])];
      if (cell.trials >= kMemory) {
        cell.trials /= 2;
        cell.came /= 2;
        cell.prior /= 2;
      }
      cell.trials += 1;
      cell.came += guesses[g].token == tokens[i] ? 1 : 0;
      cell.prior += std::max(guesses[g].by_ngram, guesses[g].by_successor);
    }
    ngram_.follow(tokens.subspan(i, 1));
    successor_.follow(tokens.subspan(i, 1));
  }
}

double MixDrafter::kept_at_depth(int depth) const {
  const Promise& promise = by_depth_[drawn_][std::min(depth, kMaxDepthLearnt)];
  return (promise.came + kDepthPrior) / (promise.promised + kDepthPrior);
}

void MixDrafter::observe(const VerifiedRows& rows) {
  successor_.observe(rows);
  // Down the accepted path: at each node that stood, what its children promised and whether one of
  // them came. What best-first growth picks is what looked best, not what is, more so the deeper.
  int node = DraftTree::kRoot;
  for (const int32_t token : rows.emitted) {
    if (rows.tree.first_child(node) == DraftTree::kNone) break;
    const int depth = rows.tree.depth(node) + 1;
    const float kept = static_cast<float>(kept_at_depth(depth));  // is part of the prediction
    Promise& promise = by_depth_[drawn_][std::min(depth, kMaxDepthLearnt)];
    if (promise.promised >= kMemory) {
      promise.promised /= 2;
      promise.came /= 2;
    }
    for (int c = rows.tree.first_child(node); c != DraftTree::kNone;
         c = rows.tree.next_sibling(c)) {
      promise.promised += rows.tree.acceptance(c) / kept;
    }
    node = rows.tree.find_child(node, token);
    if (node == DraftTree::kNone) break;
    promise.came += 1;
  }
}

MixDrafter::Context MixDrafter::context_at(int node) const {
  return node == DraftTree::kRoot ? present() : context_of_[node];
}

int MixDrafter::look_up(const DraftTree& tree, int node, std::span<Candidate> out) {
  Guesses guesses;
  const int n = std::min(guess(context_at(node), guesses), static_cast<int>(out.size()));
  float all = 0;
  for (int i = 0; i < n; ++i) all += guesses[i].acceptance;
  const float kept = std::min(static_cast<float>(kept_at_depth(tree.depth(node) + 1)),
                              all > 0 ? kMostTogether / all : 1.f);
  for (int i = 0; i < n; ++i) {
    const float acceptance = guesses[i].acceptance * kept;
    out[i] = {guesses[i].token, std::log(std::max(guesses[i].probability, 1e-9f)), acceptance};
    contexts_of(node)[i] = guesses[i].then;
  }
  return n;
}

void MixDrafter::added(const DraftTree& tree, int node, int rank) {
  const int parent = tree.parent(node);
  const Context above = context_at(parent);
  const int32_t token = tree.token(node);
  NgramDrafter::Context ngram = contexts_of(parent)[rank];
  if (ngram.matched == 0) ngram = ngram_.advance(above.ngram, token);
  context_of_[node] = {ngram, above.successor.then(token)};
}

}  // namespace sapwood
