#include "draft/successor_drafter.h"

#include <algorithm>
#include <cmath>

namespace sapwood {
namespace {

// Classes: where a guess comes from and its rank there. What is stored after a single token was
// said in another context, so it starts at about half its word; after a pair, at most of it. The
// first rank starts higher than its probability: decoding greedily, it is what comes if the context
// is alike. All of it is soon replaced by what is seen.
constexpr int kRankClasses = 4;
constexpr std::array<double, 4 * kRankClasses> kFirstPromise = {
    0.6, 0.5, 0.5, 0.5,   // after a token, the target's word
    1.0, 0.8, 0.8, 0.8,   // after a pair
    0.8, 0.8, 0.8, 0.8,   // after a token, in a saved text
    0.9, 0.8, 0.8, 0.8};  // after a pair

int class_of(bool pair, bool from_text, int rank) {
  const int rank_class = rank < 2 ? rank : rank < 4 ? 2 : 3;
  return ((from_text ? 2 : 0) + (pair ? 1 : 0)) * kRankClasses + rank_class;
}

}  // namespace

SuccessorDrafter::SuccessorDrafter(const NgramTable* saved)
    : calibration_{Calibration(kFirstPromise), Calibration(kFirstPromise)} {
  if (saved == nullptr) return;
  // The most frequent come first in it; taught last, they stay where two share a place.
  const std::span<const NgramTable::Record> records = saved->records();
  for (auto record = records.rbegin(); record != records.rend(); ++record) {
    table_.begin_with(record->before, record->token, record->top);
  }
}

const DrafterTraits& SuccessorDrafter::traits() const {
  static const DrafterTraits kTraits{.name = "successor", .gives_proposals = true};
  return kTraits;
}

Status SuccessorDrafter::start(std::span<const int32_t> tokens, int) {
  const size_t n = tokens.size();
  present_ = {n > 1 ? tokens[n - 2] : SuccessorTable::kNoToken,
              n > 0 ? tokens[n - 1] : SuccessorTable::kNoToken, 0};
  return Status::okay();
}

void SuccessorDrafter::follow(std::span<const int32_t> tokens) {
  Guesses guesses;
  Calibration& seen = calibration_[foresight_.drawn() ? 1 : 0];
  for (const int32_t token : tokens) {
    // Drafted or not, as in the n-gram drafter. The table does not hold this step's rows yet.
    const int n = guess(present_, guesses);
    for (int i = 0; i < n; ++i) {
      seen.observe(guesses[i].of_class, guesses[i].probability, guesses[i].token == token);
    }
    present_ = present_.then(token);
  }
}

void SuccessorDrafter::observe(const VerifiedRows& rows) {
  selector_.reserve(rows.vocabulary);
  TopSuccessors top;
  const auto token_of = [&](int node) -> int32_t {
    if (node != DraftTree::kRoot) return rows.tree.token(node);
    return rows.text.empty() ? SuccessorTable::kNoToken : rows.text.back();
  };
  for (int node = DraftTree::kRoot; node < rows.tree.size(); ++node) {
    int32_t before = SuccessorTable::kNoToken;
    if (node != DraftTree::kRoot) {
      before = token_of(rows.tree.parent(node));
    } else if (rows.text.size() > 1) {
      before = rows.text[rows.text.size() - 2];
    }
    selector_.select(rows.of(node), top);
    table_.refresh(before, token_of(node), top);
  }
}

int SuccessorDrafter::guess(const Context& context, Guesses& guesses) const {
  const SuccessorTable::Entry* entry = table_.after_pair(context.before, context.token);
  const bool pair = entry != nullptr;
  if (!pair) entry = table_.after_token(context.token);
  if (entry == nullptr) return 0;
  const int n = entry->count();
  for (int rank = 0; rank < n; ++rank) {
    guesses[rank].token = entry->tokens[rank];
    guesses[rank].probability = entry->probability_of(rank);
  }
  if (foresight_.drawn()) {
    const std::span<Guess> known = std::span<Guess>(guesses).first(n);
    foresight_.heat(known);
    foresight_.weigh(context.position, known);
    std::sort(known.begin(), known.end(), [](const Guess& a, const Guess& b) {
      return a.probability != b.probability ? a.probability > b.probability : a.token < b.token;
    });
  }
  float together = 0;
  for (int rank = 0; rank < n; ++rank) {
    Guess& guess = guesses[rank];
    guess.of_class = class_of(pair, entry->from_text, rank);
    guess.acceptance =
        static_cast<float>(calibration().estimate(guess.of_class, guess.probability));
    together += guess.acceptance;
  }
  for (int i = 0; together > kMostTogether && i < n; ++i) {
    guesses[i].acceptance *= kMostTogether / together;
  }
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

int SuccessorDrafter::look_up(const DraftTree&, int node, std::span<Candidate> out) {
  Guesses guesses;
  const int n = std::min(guess(context_at(node), guesses), static_cast<int>(out.size()));
  for (int i = 0; i < n; ++i) {
    out[i] = {guesses[i].token,
              static_cast<float>(std::log(std::max(guesses[i].probability, 1e-9))),
              guesses[i].acceptance};
  }
  return n;
}

void SuccessorDrafter::added(const DraftTree& tree, int node, int) {
  context_of_[node] = context_at(tree.parent(node)).then(tree.token(node));
}

}  // namespace sapwood
