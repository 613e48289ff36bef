#include "draft/successor_drafter.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <map>
#include <numeric>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "measure/allocation_counter.h"

namespace sapwood {
namespace {

using Text = std::vector<int32_t>;

TopSuccessors select(std::span<const float> logits) {
  TopSelector selector;
  selector.reserve(static_cast<int>(logits.size()));
  TopSuccessors top;
  selector.select(logits, top);
  return top;
}

// By definition: all ids, sorted.
Text plain_top(std::span<const float> logits, size_t most = TopSuccessors::kMost) {
  Text ids(logits.size());
  std::iota(ids.begin(), ids.end(), 0);
  std::stable_sort(ids.begin(), ids.end(), [&](int a, int b) { return logits[a] > logits[b]; });
  std::erase_if(ids, [&](int id) { return std::isinf(logits[id]); });
  ids.resize(std::min(ids.size(), most));
  return ids;
}

TEST(TopSelector, FindsTheLikeliestOfEveryWidthInOrder) {
  std::mt19937 random(5);
  std::normal_distribution<float> normal(0, 3);
  for (const int width : {1, 2, 7, 8, 9, 63, 64, 65, 500, 1000, 4097, 49152}) {
    for (int round = 0; round < 20; ++round) {
      std::vector<float> logits(width);
      for (float& logit : logits) logit = normal(random);
      if (round % 3 == 1) {  // many ties
        for (float& logit : logits) logit = std::round(logit);
      }
      if (round % 5 == 2) {
        for (int i = 0; i < width; ++i) {
          if (i % 3 != 0) logits[i] = -std::numeric_limits<float>::infinity();
        }
      }
      const TopSuccessors top = select(logits);
      const Text expected = plain_top(logits);
      ASSERT_EQ(Text(top.tokens.begin(), top.tokens.begin() + top.count), expected) << width;
    }
  }
}

TEST(TopSelector, ProbabilitiesAreThoseOfTheSoftmaxOrClose) {
  std::mt19937 random(6);
  std::normal_distribution<float> normal(0, 2);
  std::vector<float> logits(49152);
  for (int round = 0; round < 20; ++round) {
    for (float& logit : logits) logit = normal(random);
    for (int i = 0; i < 10; ++i) logits[random() % logits.size()] = 14.f + normal(random);
    const TopSuccessors top = select(logits);
    const double largest = *std::max_element(logits.begin(), logits.end());
    double mass = 0;
    for (const float logit : logits) mass += std::exp(logit - largest);
    for (int i = 0; i < top.count; ++i) {
      const double exact = std::exp(logits[top.tokens[i]] - largest) / mass;
      EXPECT_NEAR(top.probability[i], exact, 0.1 * exact + 1e-4);
      EXPECT_LE(top.probability[i], top.probability[std::max(i - 1, 0)]);
    }
  }
  // With all blocks looked at there is nothing to estimate.
  const std::array<float, 3> few = {1.f, 3.f, 2.f};
  EXPECT_NEAR(select(few).probability[0], 1 / (1 + std::exp(-1.0) + std::exp(-2.0)), 1e-6);
}

TEST(TopSelector, ARowWithoutNumbersTeachesNothing) {
  const float infinity = std::numeric_limits<float>::infinity();
  std::vector<float> logits(200, -infinity);
  EXPECT_EQ(select(logits).count, 0);
  EXPECT_EQ(select({}).count, 0);
  logits[3] = 1;
  EXPECT_EQ(select(logits).count, 1);
  logits[150] = std::nanf("");
  EXPECT_EQ(select(logits).count, 0);
  logits[150] = infinity;
  EXPECT_EQ(select(logits).count, 0);
}

TopSuccessors successors(std::initializer_list<std::pair<int32_t, float>> list) {
  TopSuccessors top;
  for (const auto& [token, probability] : list) {
    top.tokens[top.count] = token;
    top.probability[top.count++] = probability;
  }
  return top;
}

TEST(SuccessorTable, HoldsTheLatestWordOnEveryPairAndToken) {
  // Against a map; few enough contexts that none gives way.
  SuccessorTable table;
  std::map<std::pair<int32_t, int32_t>, int32_t> pairs;
  std::map<int32_t, int32_t> singles;
  std::mt19937 random(8);
  for (int i = 0; i < 3000; ++i) {
    const auto before = static_cast<int32_t>(random() % 20) - 1;
    const auto token = static_cast<int32_t>(random() % 20);
    const auto next = static_cast<int32_t>(random() % 1000);
    table.refresh(before, token, successors({{next, 0.75f}, {next + 1, 0.125f}}));
    singles[token] = next;
    if (before >= 0) pairs[{before, token}] = next;
  }
  for (const auto& [token, next] : singles) {
    const SuccessorTable::Entry* entry = table.after_token(token);
    ASSERT_NE(entry, nullptr);
    EXPECT_EQ(entry->tokens[0], next);
    EXPECT_EQ(entry->count(), 2);
    EXPECT_NEAR(entry->probability_of(0), 0.75f, 1e-4);
    EXPECT_NEAR(entry->probability_of(1), 0.125f, 1e-4);
  }
  for (const auto& [pair, next] : pairs) {
    const SuccessorTable::Entry* entry = table.after_pair(pair.first, pair.second);
    ASSERT_NE(entry, nullptr);
    EXPECT_EQ(entry->tokens[0], next);
  }
  EXPECT_EQ(table.after_token(777), nullptr);
  EXPECT_EQ(table.after_pair(SuccessorTable::kNoToken, 3), nullptr);
  EXPECT_EQ(table.after_token(SuccessorTable::kNoToken), nullptr);
  table.clear();
  EXPECT_EQ(table.after_token(singles.begin()->first), nullptr);
}

TEST(SuccessorTable, MemoryIsFixedAndTheOldestGivesWay) {
  SuccessorTable table;
  EXPECT_LE(SuccessorTable::bytes(), size_t{8} << 20);
  const uint64_t before = allocations();
  for (int32_t token = 0; token < 300'000; ++token) {
    table.refresh(token + 1, token, successors({{token % 1000, 1.f}}));
  }
  EXPECT_EQ(allocations() - before, 0u);
  int found = 0;
  for (int32_t token = 0; token < 300'000; ++token) {
    const SuccessorTable::Entry* entry = table.after_token(token);
    if (entry == nullptr) continue;
    ++found;
    EXPECT_EQ(entry->tokens[0], token % 1000);
    EXPECT_GE(token, 300'000 - SuccessorTable::kEntries);
  }
  EXPECT_EQ(found, SuccessorTable::kEntries);
}

// A row in which these tokens, in this order, are the likeliest.
std::vector<float> row(std::initializer_list<int32_t> order, int vocabulary) {
  std::vector<float> logits(vocabulary, -9.f);
  float logit = 6;
  for (const int32_t token : order) logits[token] = logit--;
  return logits;
}

DraftRequest chain(int nodes) {
  DraftRequest request;
  request.growth = Growth::kChain;
  request.max_nodes = request.max_depth = nodes;
  return request;
}

Text tokens_of(const DraftTree& tree) { return {tree.tokens().begin(), tree.tokens().end()}; }

TEST(SuccessorDrafter, DraftsWhatTheTargetSaidAfterThePairElseAfterTheToken) {
  constexpr int kVocabulary = 100;
  SuccessorDrafter drafter;
  DraftTree none;
  const auto teach = [&](const Text& text, std::initializer_list<int32_t> order) {
    const std::vector<float> logits = row(order, kVocabulary);
    drafter.observe({text, none, logits, kVocabulary, {}});
  };
  teach({1, 2}, {3, 30});
  teach({2, 3}, {4, 40});
  teach({9, 3}, {5, 50});
  teach({3, 4}, {6});

  ASSERT_TRUE(drafter.start(Text{1, 2}, 64).ok());
  DraftTree tree;
  ASSERT_TRUE(drafter.propose(chain(4), tree).ok());
  EXPECT_EQ(tokens_of(tree), (Text{3, 4, 6}));

  tree.clear();
  ASSERT_TRUE(drafter.start(Text{9, 3}, 64).ok());
  ASSERT_TRUE(drafter.propose(chain(1), tree).ok());
  EXPECT_EQ(tokens_of(tree), Text{5});

  tree.clear();  // 7, 3 was never seen; after 3 alone, 5 came last
  ASSERT_TRUE(drafter.start(Text{7, 3}, 64).ok());
  ASSERT_TRUE(drafter.propose(chain(1), tree).ok());
  EXPECT_EQ(tokens_of(tree), Text{5});

  tree.clear();
  ASSERT_TRUE(drafter.start(Text{80}, 64).ok());
  ASSERT_TRUE(drafter.propose(chain(4), tree).ok());
  EXPECT_TRUE(tree.empty());
}

TEST(SuccessorDrafter, RefutedGuessesTeachToo) {
  constexpr int kVocabulary = 50;
  SuccessorDrafter drafter;
  ASSERT_TRUE(drafter.start(Text{1, 2}, 64).ok());
  DraftTree tree;
  const int a = tree.add(DraftTree::kRoot, 10, -1, -1, 0.5f);
  tree.add(a, 11, -1, -1, 0.5f);
  tree.add(DraftTree::kRoot, 20, -1, -1, 0.2f);
  std::vector<float> logits;
  for (const auto& order : {row({30}, kVocabulary), row({31}, kVocabulary), row({32}, kVocabulary),
                            row({33}, kVocabulary)}) {
    logits.insert(logits.end(), order.begin(), order.end());
  }
  const Text emitted = {30};
  drafter.follow(emitted);
  drafter.observe({Text{1, 2}, tree, logits, kVocabulary, emitted});
  EXPECT_EQ(drafter.table().after_pair(1, 2)->tokens[0], 30);
  EXPECT_EQ(drafter.table().after_pair(2, 10)->tokens[0], 31);
  EXPECT_EQ(drafter.table().after_pair(10, 11)->tokens[0], 32);
  EXPECT_EQ(drafter.table().after_pair(2, 20)->tokens[0], 33);
  EXPECT_EQ(drafter.table().after_token(11)->tokens[0], 32);
}

TEST(SuccessorDrafter, ANewTextKeepsTheTable) {
  SuccessorDrafter drafter;
  const std::vector<float> logits = row({3}, 10);
  DraftTree none;
  drafter.observe({Text{1, 2}, none, logits, 10, {}});
  for (int text = 0; text < 3; ++text) {
    ASSERT_TRUE(drafter.start(Text{5, 1, 2}, 64).ok());
    DraftTree tree;
    ASSERT_TRUE(drafter.propose(chain(1), tree).ok());
    EXPECT_EQ(tokens_of(tree), Text{3});
  }
}

// The table says 3 with certainty and is right in one case of four: soon nobody believes it.
TEST(SuccessorDrafter, AcceptanceConvergesToWhatIsSeen) {
  SuccessorDrafter drafter;
  const std::vector<float> logits = row({3}, 10);
  DraftTree none;
  ASSERT_TRUE(drafter.start(Text{1, 2}, 64).ok());
  drafter.observe({Text{1, 2}, none, logits, 10, {}});
  SuccessorDrafter::Guesses guesses;
  ASSERT_GT(drafter.guess({1, 2}, guesses), 0);
  EXPECT_GT(guesses[0].acceptance, 0.8f);
  for (int i = 0; i < 400; ++i) {
    drafter.follow(Text{i % 4 == 0 ? 3 : 4});
    ASSERT_TRUE(drafter.start(Text{1, 2}, 64).ok());
  }
  drafter.guess({1, 2}, guesses);
  float of_three = 0;
  for (const SuccessorDrafter::Guess& guess : guesses) {
    if (guess.token == 3) of_three = guess.acceptance;
  }
  EXPECT_NEAR(of_three, 0.25f, 0.03f);
}

TEST(Calibration, EstimatesMoveFromThePromiseToWhatCame) {
  const std::array<double, 2> first = {0.5, 1.0};
  Calibration calibration(first);
  EXPECT_NEAR(calibration.estimate(0, 0.4), 0.2, 1e-12);
  EXPECT_NEAR(calibration.estimate(1, 0.4), 0.4, 1e-12);
  for (int i = 0; i < 1000; ++i) calibration.observe(1, 0.4, i % 10 == 0);
  EXPECT_NEAR(calibration.estimate(1, 0.4), 0.1, 0.02);
  // A class that breaks its promises is believed less at other probabilities as well, others not.
  EXPECT_LT(calibration.estimate(1, 0.95), 0.3);
  EXPECT_NEAR(calibration.estimate(0, 0.4), 0.2, 1e-12);
}

}  // namespace
}  // namespace sapwood
