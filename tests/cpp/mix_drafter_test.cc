#include "draft/mix_drafter.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "draft/drafters.h"
#include "fake_draft.h"
#include "fake_model.h"
#include "verify/chance.h"

namespace sapwood {
namespace {

using Text = std::vector<int32_t>;
constexpr int kVocabulary = 64;

const CostCurve& free_rows() {
  static const CostCurve curve =
      CostCurve::measured(std::array<int, 2>{1, 256}, std::array<double, 2>{1.0, 1.0});
  return curve;
}

DraftRequest budgeted(int nodes, int width = 16) {
  DraftRequest request;
  request.cost = &free_rows();
  request.max_nodes = request.max_depth = nodes;
  request.max_width = width;
  return request;
}

std::vector<float> row(std::initializer_list<int32_t> order) {
  std::vector<float> logits(kVocabulary, -9.f);
  float logit = 6;
  for (const int32_t token : order) logits[token] = logit--;
  return logits;
}

void teach(Drafter& drafter, const Text& text, std::initializer_list<int32_t> order) {
  DraftTree none;
  const std::vector<float> logits = row(order);
  drafter.observe({text, none, logits, kVocabulary, {}});
}

TEST(MixDrafter, OffersWhatEitherSourceKnowsAndNothingTwice) {
  MixDrafter drafter;
  teach(drafter, {2, 3}, {20, 4});
  ASSERT_TRUE(drafter.start(Text{2, 3, 4, 5, 2, 3, 9, 2, 3}, 64).ok());
  DraftTree tree;
  ASSERT_TRUE(drafter.propose(budgeted(60), tree).ok());
  std::set<int32_t> children;
  for (int c = tree.first_child(DraftTree::kRoot); c != DraftTree::kNone;
       c = tree.next_sibling(c)) {
    EXPECT_TRUE(children.insert(tree.token(c)).second);
  }
  EXPECT_TRUE(children.contains(20));  // the target said so
  EXPECT_TRUE(children.contains(4));   // both
  EXPECT_TRUE(children.contains(9));   // the text did
  // The text goes on behind a token that only the table suggested, and the other way round.
  const int four = tree.find_child(DraftTree::kRoot, 4);
  EXPECT_NE(tree.find_child(four, 5), DraftTree::kNone);
}

// The table keeps eight successors, though all but the first may have a probability of nothing.
TEST(MixDrafter, SuccessorsOfNoProbabilityAreNoHarmToRankedAndDrawnTrees) {
  MixDrafter drafter;
  std::vector<float> logits(kVocabulary, -60.f);
  logits[8] = 9.f;
  ASSERT_TRUE(drafter.start(Text{6, 7}, 64).ok());
  DraftTree none;
  drafter.observe({Text{6, 7}, none, logits, kVocabulary, {}});
  for (const bool drawn : {false, true}) {
    DraftTree tree;
    Proposals proposals;
    CounterChance chance(3, RandomStream::kDraft, 0);
    const Status grown = drawn ? drafter.propose_sampled(budgeted(8), chance, tree, proposals)
                               : drafter.propose(budgeted(8), tree);
    ASSERT_TRUE(grown.ok()) << grown.message();
    ASSERT_GT(tree.size(), 0);
    EXPECT_EQ(tree.token(0), 8);
    for (int v = 0; v < tree.size(); ++v) {
      EXPECT_TRUE(tree.acceptance(v) >= 0 && tree.acceptance(v) <= 1) << tree.acceptance(v);
    }
  }
}

TEST(MixDrafter, TheTableGoesOnWhereTheTextEnds) {
  MixDrafter drafter;
  teach(drafter, {6, 7}, {8});
  teach(drafter, {7, 8}, {1});
  ASSERT_TRUE(drafter.start(Text{1, 2, 6, 7}, 64).ok());
  DraftTree tree;
  DraftRequest request = budgeted(4);
  request.growth = Growth::kChain;
  ASSERT_TRUE(drafter.propose(request, tree).ok());
  // 8 and 1 from the table, then 2 and 6 because that followed 1 in the text.
  EXPECT_EQ(Text(tree.tokens().begin(), tree.tokens().end()), (Text{8, 1, 2, 6}));
}

TEST(MixDrafter, SiblingsNeverPromiseMoreThanOne) {
  std::mt19937 random(11);
  MixDrafter drafter;
  ASSERT_TRUE(drafter.start(Text{1, 2, 3}, 4000).ok());
  Text text = {1, 2, 3};
  for (int i = 0; i < 600; ++i) {
    DraftTree tree;
    ASSERT_TRUE(drafter.propose(budgeted(1 + static_cast<int>(random() % 31)), tree).ok());
    for (int v = DraftTree::kRoot; v < tree.size(); ++v) {
      double together = 0;
      for (int c = tree.first_child(v); c != DraftTree::kNone; c = tree.next_sibling(c)) {
        together += tree.acceptance(c);
        EXPECT_TRUE(std::isfinite(tree.log_q(c)));
      }
      EXPECT_LE(together, 1.0 + 1e-5);
    }
    const Text emitted = {static_cast<int32_t>(random() % 5)};
    std::vector<float> logits;
    for (int v = 0; v <= tree.size(); ++v) {
      for (int t = 0; t < kVocabulary; ++t) {
        logits.push_back(static_cast<float>(random() % 1000) / 100.f);
      }
    }
    const Text before = text;
    text.insert(text.end(), emitted.begin(), emitted.end());
    drafter.follow(emitted);
    drafter.observe({before, tree, logits, kVocabulary, emitted});
  }
}

// What the whole tree promises is what comes, on a text neither source can foresee fully.
TEST(MixDrafter, PredictedAcceptedTokensConvergeToSeenOnes) {
  std::mt19937 random(21);
  MixDrafter drafter;
  Text text = {0, 1};
  ASSERT_TRUE(drafter.start(text, 8000).ok());
  const auto next_of = [&](int32_t token) {
    return random() % 3 != 0 ? (token * 5 + 1) % 16 : static_cast<int32_t>(random() % 16);
  };
  double predicted = 0;
  int accepted = 0;
  int steps = 0;
  for (int i = 0; i < 2500; ++i) {
    DraftTree tree;
    ASSERT_TRUE(drafter.propose(budgeted(6), tree).ok());
    Text emitted;
    int node = DraftTree::kRoot;
    for (;;) {
      const int32_t token = next_of(emitted.empty() ? text.back() : emitted.back());
      emitted.push_back(token);
      node = tree.find_child(node, token);
      if (node == DraftTree::kNone) break;
    }
    if (i > 800) {
      predicted += tree.expected_tokens() - 1;
      accepted += static_cast<int>(emitted.size()) - 1;
      ++steps;
    }
    std::vector<float> logits;
    for (int v = DraftTree::kRoot; v < tree.size(); ++v) {
      const int32_t at = v == DraftTree::kRoot ? text.back() : tree.token(v);
      const std::vector<float> logit =
          row({(at * 5 + 1) % 16, static_cast<int32_t>(random() % 16)});
      logits.insert(logits.end(), logit.begin(), logit.end());
    }
    const Text before = text;
    text.insert(text.end(), emitted.begin(), emitted.end());
    drafter.follow(emitted);
    drafter.observe({before, tree, logits, kVocabulary, emitted});
  }
  EXPECT_GT(accepted, steps);
  EXPECT_NEAR(predicted / accepted, 1.0, 0.12);
}

TEST(MixDrafter, TheSameHistoryGivesTheSameTree) {
  std::string first;
  for (int round = 0; round < 2; ++round) {
    MixDrafter drafter;
    std::mt19937 random(5);
    Text text(100);
    for (int32_t& token : text) token = static_cast<int32_t>(random() % 6);
    teach(drafter, {1, 2}, {3, 4, 5});
    teach(drafter, {2, 3}, {4, 5});
    ASSERT_TRUE(drafter.start(text, 400).ok());
    drafter.follow(Text{1, 2});
    DraftTree tree;
    ASSERT_TRUE(drafter.propose(budgeted(31), tree).ok());
    EXPECT_EQ(tree.size(), 31);
    if (round == 0) first = tree.to_json();
    EXPECT_EQ(tree.to_json(), first);
  }
}

TEST(MakeDrafter, KnowsEveryNameAndRefusesOthers) {
  for (const std::string_view name : kDrafterNames) {
    DrafterParts parts;
    if (drafter_needs_model(name)) {
      EXPECT_EQ(make_drafter(name).status().code(), Code::kInvalidArgument) << name;
      parts.model = std::make_shared<FakeModel>(FakeModel::Options{});
    }
    if (drafter_needs_draft(name)) {
      EXPECT_EQ(make_drafter(name).status().code(), Code::kInvalidArgument) << name;
      const std::string_view other = name == "head" ? "parallel-heads" : "head";
      parts.draft = std::make_shared<FakeDraft>(FakeDraft::Options{}, other);
      EXPECT_EQ(make_drafter(name, parts).status().code(), Code::kInvalidArgument) << name;
      parts.draft = std::make_shared<FakeDraft>(FakeDraft::Options{}, name);
    }
    Result<std::unique_ptr<Drafter>> drafter = make_drafter(name, parts);
    ASSERT_TRUE(drafter.ok()) << name;
    EXPECT_EQ(drafter.value()->traits().name, name);
  }
  const DrafterParts unused{.model = std::make_shared<FakeModel>(FakeModel::Options{})};
  EXPECT_EQ(make_drafter("mix", unused).status().code(), Code::kInvalidArgument);
  DrafterParts both = unused;
  both.draft = std::make_shared<FakeDraft>(FakeDraft::Options{});
  for (const char* name : {"cascade", "head", "model"}) {
    EXPECT_EQ(make_drafter(name, both).status().code(), Code::kInvalidArgument) << name;
  }
  both.model = nullptr;
  EXPECT_TRUE(make_drafter("cascade", both).ok());
  EXPECT_EQ(make_drafter("model", both).status().code(), Code::kInvalidArgument);
  const Result<std::unique_ptr<Drafter>> other = make_drafter("oracle");
  EXPECT_EQ(other.status().code(), Code::kInvalidArgument);
  EXPECT_NE(other.status().message().find("oracle"), std::string::npos);
}

}  // namespace
}  // namespace sapwood
