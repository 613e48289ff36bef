#include "draft/guess_pool.h"

#include <algorithm>
#include <numeric>

namespace sapwood {

GuessPool::GuessPool()
    : guesses_(static_cast<size_t>(kCapacity) + 1),
      order_(kCapacity),
      chance_(kCapacity),
      placed_(kCapacity) {
  clear();
}

void GuessPool::clear() {
  size_ = 0;
  at(kRoot) = Guess{.acceptance = 1.f, .path_acceptance = 1.f};
}

int GuessPool::add(int parent, int32_t token, float acceptance) {
  if (size_ == kCapacity) return kNone;
  const int16_t added = static_cast<int16_t>(size_++);
  Guess& above = at(parent);
  at(added) = Guess{.token = token,
                    .parent = static_cast<int16_t>(parent),
                    .depth = static_cast<int16_t>(above.depth + 1),
                    .acceptance = acceptance,
                    .path_acceptance = above.path_acceptance * acceptance};
  if (above.first_child == kNone) {
    above.first_child = added;
  } else {
    at(above.last_child).next_sibling = added;
  }
  above.last_child = added;
  return added;
}

int GuessPool::find_child(int parent, int32_t token) const {
  int child = at(parent).first_child;
  while (child != kNone && at(child).token != token) child = at(child).next_sibling;
  return child;
}

int GuessPool::child(int parent, int rank) const {
  int child = at(parent).first_child;
  for (; child != kNone && rank > 0; --rank) child = at(child).next_sibling;
  return child;
}

double GuessPool::children_acceptance(int parent) const {
  double sum = 0;
  for (int c = at(parent).first_child; c != kNone; c = at(c).next_sibling) sum += at(c).acceptance;
  return sum;
}

void GuessPool::make_root(int guess, std::span<const int16_t> nodes) {
  const int before = size_;
  clear();
  at(kRoot).node = DraftTree::kRoot;
  // Guesses are numbered after their parents, so a kept one never moves up.
  for (int old = guess + 1; old < before; ++old) {
    const Guess moving = at(old);
    const int parent = moving.parent == guess  ? kRoot
                       : moving.parent < guess ? kNone
                                               : placed_[moving.parent];
    placed_[old] = kNone;
    if (parent == kNone) continue;
    const int kept = add(parent, moving.token, moving.acceptance);
    placed_[old] = static_cast<int16_t>(kept);
    Guess& g = at(kept);
    g.node = moving.node < 0 ? moving.node : nodes[moving.node];
    g.pruned = moving.pruned;
    g.of_class = moving.of_class;
    g.probability = moving.probability;
    g.log_q = moving.log_q;
    g.log_q_kept = moving.log_q_kept;
  }
}

void GuessPool::refresh() {
  for (int guess = 0; guess < size_; ++guess) {
    at(guess).path_acceptance = at(at(guess).parent).path_acceptance * at(guess).acceptance;
  }
}

std::span<const int16_t> GuessPool::by_path_acceptance() {
  const auto end = order_.begin() + size_;
  std::iota(order_.begin(), end, int16_t{0});
  // Among equals the older one, so that trees agree between machines and parents come first.
  std::sort(order_.begin(), end, [this](int16_t a, int16_t b) {
    const float first = at(a).path_acceptance;
    const float second = at(b).path_acceptance;
    return first != second ? first > second : a < b;
  });
  return {order_.data(), static_cast<size_t>(size_)};
}

std::span<const int16_t> GuessPool::by_chance(float least) {
  size_t count = 0;
  for (int guess = 0; guess < size_; ++guess) {
    const Guess& g = at(guess);
    const float above = g.parent == kRoot ? 1.f : chance_[g.parent];
    chance_[guess] = above * (g.pruned ? g.probability : g.acceptance);
    if (chance_[guess] >= least) order_[count++] = static_cast<int16_t>(guess);
  }
  std::sort(order_.begin(), order_.begin() + static_cast<ptrdiff_t>(count),
            [this](int16_t a, int16_t b) {
              return chance_[a] != chance_[b] ? chance_[a] > chance_[b] : a < b;
            });
  return {order_.data(), count};
}

std::span<const int16_t> GuessPool::select(Budget& budget) {
  by_path_acceptance();
  int taken = 0;
  // Pruned ones and what is below them come last, with nothing.
  while (taken < size_ && at(order_[taken]).path_acceptance > 0 &&
         budget.wants(at(order_[taken]).path_acceptance)) {
    budget.add(at(order_[taken]).path_acceptance);
    ++taken;
  }
  return {order_.data(), static_cast<size_t>(taken)};
}

void GuessPool::build(std::span<const int16_t> selected, DraftTree& tree) {
  for (const int16_t guess : selected) {
    const Guess& g = at(guess);
    const int parent = g.parent == kRoot ? DraftTree::kRoot : placed_[g.parent];
    placed_[guess] =
        static_cast<int16_t>(tree.add(parent, g.token, g.log_q, g.log_q_kept, g.acceptance));
  }
}

}  // namespace sapwood
