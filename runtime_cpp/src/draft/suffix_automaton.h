// An online suffix automaton (Blumer et al., 1985) over tokens, with counts on its edges.
//
// Every distinct substring of the text leads from the initial state to one state; a state's suffix
// link leads to the longest shorter context that has been followed by something else as well. So
// the text's own suffixes that have occurred before are one walk along links, longest first, and
// each state's edges are what came after, with how often. Appending a token costs O(1) amortised,
// apart from counting, which walks at most kCountedContexts links.
//
// Memory is bounded: when `capacity` tokens are reached the automaton is rebuilt from the newest
// half of them, which keeps appending O(1) amortised and forgets the oldest text.
#pragma once

#include <cstdint>
#include <span>
#include <vector>

namespace sapwood {

class SuffixAutomaton {
 public:
  static constexpr int kInitial = 0;
  static constexpr int kNoState = -1;
  static constexpr int kNoEdge = -1;
  static constexpr int kCountedContexts = 64;

  struct Edge {
    int32_t token;
    int32_t to;     // state
    int32_t count;  // how often the token followed this context
    int32_t next;   // the state's next edge, less recently used, or kNoEdge
    int32_t previous;
  };

  explicit SuffixAutomaton(int capacity);  // tokens; at least 2. The only allocation.

  void clear();
  void append(int32_t token);
  int size() const { return static_cast<int>(text_.size()); }  // tokens remembered
  int capacity() const { return capacity_; }
  std::span<const int32_t> text() const { return text_; }

  // The state of the longest suffix of the text that also occurs earlier in it; kInitial if none.
  int longest_seen_suffix() const {
    return states_[last_].link == kNoState ? kInitial : states_[last_].link;
  }

  int length(int state) const { return states_[state].length; }    // of its longest substring
  int link(int state) const { return states_[state].link; }        // kNoState for kInitial
  int follows(int state) const { return states_[state].follows; }  // sum of its edges' counts
  int degree(int state) const { return states_[state].degree; }    // number of its edges
  int states() const { return static_cast<int>(states_.size()); }

  // A state's edges, most recently used first: for (e = first_edge(s); e != kNoEdge; e =
  // edge(e).next).
  int first_edge(int state) const { return states_[state].first_edge; }
  const Edge& edge(int index) const { return edges_[index]; }
  int find_edge(int state, int32_t token) const;  // kNoEdge if there is none

  // Follows a token; kNoState if that substring never occurred.
  int next(int state, int32_t token) const;
  int find(std::span<const int32_t> tokens) const;  // from kInitial

 private:
  struct StateRecord {
    int32_t length;
    int32_t link;
    int32_t first_edge;
    int32_t follows;  // sum of the edges' counts
    int32_t degree;   // number of edges
  };

  int new_state(int length, int link);
  void new_edge(int state, int32_t token, int to, int count);
  void touch(int state, int edge);
  void extend(int32_t token);
  void rebuild();
  size_t first_slot(int state, int32_t token) const;

  const int capacity_;
  int last_ = kInitial;
  std::vector<int32_t> text_;
  std::vector<int32_t> keep_;  // scratch of rebuild()
  std::vector<StateRecord> states_;
  std::vector<Edge> edges_;
  std::vector<int32_t> owner_;  // [edges] the state an edge leaves
  std::vector<int32_t> table_;  // open addressing by (state, token) -> edge
};

}  // namespace sapwood
