#include "draft/suffix_automaton.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <random>
#include <vector>

namespace sapwood {
namespace {

using Text = std::vector<int32_t>;

bool occurs(const Text& text, const Text& part, size_t end) {
  return std::search(text.begin(), text.begin() + end, part.begin(), part.end()) !=
         text.begin() + end;
}

// What followed `context` in `text`, and how often.
std::map<int32_t, int> followers(const Text& text, const Text& context) {
  std::map<int32_t, int> counts;
  for (size_t i = 0; i + context.size() < text.size(); ++i) {
    if (std::equal(context.begin(), context.end(), text.begin() + i)) {
      ++counts[text[i + context.size()]];
    }
  }
  return counts;
}

std::map<int32_t, int> edges_of(const SuffixAutomaton& automaton, int state) {
  std::map<int32_t, int> counts;
  int follows = 0;
  for (int e = automaton.first_edge(state); e != SuffixAutomaton::kNoEdge;
       e = automaton.edge(e).next) {
    counts[automaton.edge(e).token] = automaton.edge(e).count;
    follows += automaton.edge(e).count;
  }
  EXPECT_EQ(follows, automaton.follows(state));
  EXPECT_EQ(static_cast<int>(counts.size()), automaton.degree(state));
  return counts;
}

Text random_text(int length, int alphabet, std::mt19937& random) {
  Text text(length);
  for (int32_t& token : text) token = static_cast<int32_t>(random() % alphabet);
  return text;
}

TEST(SuffixAutomaton, ItHoldsTheSubstringsOfTheTextAndNoOthers) {
  std::mt19937 random(1);
  for (const int alphabet : {1, 2, 3, 10}) {
    const Text text = random_text(60, alphabet, random);
    SuffixAutomaton automaton(60);
    for (const int32_t token : text) automaton.append(token);
    for (size_t begin = 0; begin < text.size(); ++begin) {
      for (size_t end = begin; end <= text.size(); ++end) {
        ASSERT_NE(automaton.find(std::span<const int32_t>(text).subspan(begin, end - begin)),
                  SuffixAutomaton::kNoState);
      }
    }
    for (int trial = 0; trial < 500; ++trial) {
      const Text part = random_text(1 + static_cast<int>(random() % 8), alphabet + 1, random);
      ASSERT_EQ(automaton.find(part) != SuffixAutomaton::kNoState, occurs(text, part, text.size()));
    }
  }
}

// After every token: the longest suffix seen before, and for it and every shorter context along the
// links, each successor with its exact count.
TEST(SuffixAutomaton, SuffixesAndCountsEqualANaiveSearchAfterEveryToken) {
  std::mt19937 random(2);
  for (const int alphabet : {2, 4, 20}) {
    const Text text = random_text(150, alphabet, random);
    SuffixAutomaton automaton(150);
    Text so_far;
    for (const int32_t token : text) {
      automaton.append(token);
      so_far.push_back(token);
      size_t longest = so_far.size() - 1;
      while (longest > 0 &&
             !occurs(so_far, Text(so_far.end() - longest, so_far.end()), so_far.size() - 1)) {
        --longest;
      }
      int state = automaton.longest_seen_suffix();
      ASSERT_EQ(automaton.length(state), static_cast<int>(longest));
      for (; state != SuffixAutomaton::kNoState; state = automaton.link(state)) {
        const Text context(so_far.end() - automaton.length(state), so_far.end());
        ASSERT_EQ(automaton.find(context), state);
        ASSERT_EQ(edges_of(automaton, state), followers(so_far, context));
      }
    }
    EXPECT_LE(automaton.states(), 2 * 150);
  }
}

TEST(SuffixAutomaton, EdgesAreListedMostRecentlyUsedFirst) {
  SuffixAutomaton automaton(32);
  for (const int32_t token : {9, 1, 9, 2, 9, 3, 9, 1, 9}) automaton.append(token);
  Text order;
  const int state = automaton.longest_seen_suffix();
  for (int s = state; automaton.length(s) > 0; s = automaton.link(s)) {
    if (automaton.length(s) != 1) continue;
    for (int e = automaton.first_edge(s); e != SuffixAutomaton::kNoEdge;
         e = automaton.edge(e).next) {
      order.push_back(automaton.edge(e).token);
    }
  }
  EXPECT_EQ(order, (Text{1, 3, 2}));
}

TEST(SuffixAutomaton, WhenFullItRemembersTheNewestHalfAndGoesOn) {
  std::mt19937 random(4);
  for (const int capacity : {2, 3, 50, 64}) {
    SuffixAutomaton automaton(capacity);
    const Text text = random_text(5 * capacity + 3, 3, random);
    Text so_far;
    for (const int32_t token : text) {
      automaton.append(token);
      so_far.push_back(token);
      ASSERT_LE(automaton.size(), capacity);
      ASSERT_GE(automaton.size(), std::min<int>(so_far.size(), capacity / 2));
      const Text kept(automaton.text().begin(), automaton.text().end());
      ASSERT_TRUE(std::equal(kept.rbegin(), kept.rend(), so_far.rbegin()));
    }
    // What it holds is what a fresh one over the kept text holds.
    SuffixAutomaton fresh(capacity);
    for (const int32_t token : automaton.text()) fresh.append(token);
    int a = automaton.longest_seen_suffix();
    int b = fresh.longest_seen_suffix();
    while (a != SuffixAutomaton::kNoState && b != SuffixAutomaton::kNoState) {
      ASSERT_EQ(automaton.length(a), fresh.length(b));
      ASSERT_EQ(edges_of(automaton, a), edges_of(fresh, b));
      a = automaton.link(a);
      b = fresh.link(b);
    }
    ASSERT_EQ(a, b);
  }
}

TEST(SuffixAutomaton, TheSameTokenOverAndOverStaysLinear) {
  constexpr int kTokens = 100000;
  SuffixAutomaton automaton(kTokens);
  for (int i = 0; i < kTokens; ++i) automaton.append(7);
  EXPECT_EQ(automaton.states(), kTokens + 1);
  EXPECT_EQ(automaton.length(automaton.longest_seen_suffix()), kTokens - 1);
}

TEST(SuffixAutomaton, ClearingForgetsEverything) {
  SuffixAutomaton automaton(8);
  for (const int32_t token : {1, 2, 1, 2}) automaton.append(token);
  automaton.clear();
  EXPECT_EQ(automaton.size(), 0);
  EXPECT_EQ(automaton.longest_seen_suffix(), SuffixAutomaton::kInitial);
  EXPECT_EQ(automaton.next(SuffixAutomaton::kInitial, 1), SuffixAutomaton::kNoState);
}

}  // namespace
}  // namespace sapwood
