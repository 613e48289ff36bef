#include "draft/suffix_automaton.h"

#include <algorithm>
#include <bit>

namespace sapwood {

// An automaton of n >= 2 tokens has at most 2n - 1 states and 3n - 4 edges (Blumer et al.).
SuffixAutomaton::SuffixAutomaton(int capacity)
    : capacity_(std::max(capacity, 2)),
      table_(std::bit_ceil(static_cast<size_t>(capacity_) * 6), kNoEdge) {
  const size_t n = static_cast<size_t>(capacity_);
  text_.reserve(n);
  keep_.reserve(n);
  states_.reserve(2 * n);
  edges_.reserve(3 * n);
  owner_.reserve(3 * n);
  clear();
}

void SuffixAutomaton::clear() {
  text_.clear();
  states_.clear();
  edges_.clear();
  owner_.clear();
  std::fill(table_.begin(), table_.end(), kNoEdge);
  last_ = new_state(0, kNoState);
}

void SuffixAutomaton::append(int32_t token) {
  if (size() == capacity_) rebuild();
  extend(token);
}

void SuffixAutomaton::rebuild() {
  keep_.assign(text_.begin() + (text_.size() + 1) / 2, text_.end());
  clear();
  for (const int32_t token : keep_) extend(token);
}

int SuffixAutomaton::new_state(int length, int link) {
  states_.push_back({length, link, kNoEdge, 0, 0});
  return static_cast<int>(states_.size()) - 1;
}

size_t SuffixAutomaton::first_slot(int state, int32_t token) const {
  uint64_t key =
      (static_cast<uint64_t>(static_cast<uint32_t>(state)) << 32) | static_cast<uint32_t>(token);
  key *= 0x9E3779B97F4A7C15u;  // Fibonacci hashing: the high bits of the product are well mixed
  return static_cast<size_t>(key >> (64 - std::countr_zero(table_.size())));
}

int SuffixAutomaton::find_edge(int state, int32_t token) const {
  for (size_t slot = first_slot(state, token);; slot = (slot + 1) & (table_.size() - 1)) {
    const int e = table_[slot];
    if (e == kNoEdge || (edges_[e].token == token && owner_[e] == state)) return e;
  }
}

// Puts a new edge in front of the state's list.
void SuffixAutomaton::new_edge(int state, int32_t token, int to, int count) {
  const int e = static_cast<int>(edges_.size());
  StateRecord& from = states_[state];
  edges_.push_back({token, to, count, from.first_edge, kNoEdge});
  owner_.push_back(state);
  if (from.first_edge != kNoEdge) edges_[from.first_edge].previous = e;
  from.first_edge = e;
  from.follows += count;
  ++from.degree;
  size_t slot = first_slot(state, token);
  while (table_[slot] != kNoEdge) slot = (slot + 1) & (table_.size() - 1);
  table_[slot] = e;
}

// One more occurrence: counts it and moves the edge to the front.
void SuffixAutomaton::touch(int state, int e) {
  StateRecord& from = states_[state];
  Edge& edge = edges_[e];
  ++edge.count;
  ++from.follows;
  if (from.first_edge == e) return;
  edges_[edge.previous].next = edge.next;
  if (edge.next != kNoEdge) edges_[edge.next].previous = edge.previous;
  edge.previous = kNoEdge;
  edge.next = from.first_edge;
  edges_[from.first_edge].previous = e;
  from.first_edge = e;
}

void SuffixAutomaton::extend(int32_t token) {
  text_.push_back(token);
  const int current = new_state(states_[last_].length + 1, kNoState);
  int state = last_;
  int e = kNoEdge;
  for (; state != kNoState; state = states_[state].link) {
    e = find_edge(state, token);
    if (e != kNoEdge) break;
    new_edge(state, token, current, 1);
  }
  last_ = current;
  if (state == kNoState) {
    states_[current].link = kInitial;
    return;
  }
  const int seen = state;  // the longest context that was followed by this token before
  const int target = edges_[e].to;
  if (states_[target].length == states_[seen].length + 1) {
    states_[current].link = target;
  } else {
    // `target` also holds longer contexts; the short ones get a state of their own, which has been
    // followed by the same tokens as often.
    const int clone = new_state(states_[seen].length + 1, states_[target].link);
    int oldest = states_[target].first_edge;
    while (oldest != kNoEdge && edges_[oldest].next != kNoEdge) oldest = edges_[oldest].next;
    for (int copied = oldest; copied != kNoEdge; copied = edges_[copied].previous) {
      const Edge edge = edges_[copied];
      new_edge(clone, edge.token, edge.to, edge.count);
    }
    for (int s = seen; s != kNoState; s = states_[s].link) {
      const int shared = find_edge(s, token);
      if (edges_[shared].to != target) break;
      edges_[shared].to = clone;
    }
    states_[target].link = clone;
    states_[current].link = clone;
  }
  int s = seen;
  for (int walked = 0; s != kNoState && walked < kCountedContexts; ++walked) {
    touch(s, find_edge(s, token));
    s = states_[s].link;
  }
}

int SuffixAutomaton::next(int state, int32_t token) const {
  const int e = find_edge(state, token);
  return e == kNoEdge ? kNoState : edges_[e].to;
}

int SuffixAutomaton::find(std::span<const int32_t> tokens) const {
  int state = kInitial;
  for (size_t i = 0; i < tokens.size() && state != kNoState; ++i) state = next(state, tokens[i]);
  return state;
}

}  // namespace sapwood
