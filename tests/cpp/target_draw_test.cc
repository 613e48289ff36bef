// target_draw by exact enumeration: every draw at every node, weighted by its probability.
#include "verify/target_draw.h"

#include <gtest/gtest.h>

#include <cmath>
#include <functional>
#include <map>
#include <random>
#include <vector>

#include "verify/exponential.h"
#include "verify/random.h"

namespace sapwood {
namespace {

constexpr int kVocabulary = 5;

// A small random model: logits for every history, made on demand and remembered.
class TinyModel {
 public:
  explicit TinyModel(uint32_t seed) : random_(seed) {}
  const std::vector<float>& logits(const std::vector<int32_t>& text) {
    auto [entry, fresh] = logits_.try_emplace(text);
    if (fresh) {
      std::normal_distribution<float> normal(0, 2);
      for (int i = 0; i < kVocabulary; ++i) entry->second.push_back(normal(random_));
    }
    return entry->second;
  }

 private:
  std::mt19937 random_;
  std::map<std::vector<int32_t>, std::vector<float>> logits_;
};

std::vector<int32_t> text_of(const DraftTree& tree, int node) {
  std::vector<int> path(tree.depth(node));
  tree.path(node, path);
  std::vector<int32_t> text;
  for (const int v : path) text.push_back(tree.token(v));
  return text;
}

std::vector<float> tree_logits(TinyModel& model, const DraftTree& tree) {
  std::vector<float> all;
  for (int v = DraftTree::kRoot; v < tree.size(); ++v) {
    const std::vector<float>& row = model.logits(text_of(tree, v));
    all.insert(all.end(), row.begin(), row.end());
  }
  return all;
}

DraftTree random_tree(int nodes, std::mt19937& random) {
  DraftTree tree;
  for (int tries = 0; tree.size() < nodes && tries < 1000; ++tries) {
    tree.add(static_cast<int>(random() % (tree.size() + 1)) - 1,
             static_cast<int32_t>(random() % kVocabulary), -1, -1, 0.5f);
  }
  return tree;
}

// Probabilities a draw gives each token: what the law's weights say, in double.
std::vector<double> draw_law(Sampler& sampler, const std::vector<float>& logits) {
  const Result<TokenLaw> law = sampler.law(logits);
  std::vector<double> p(kVocabulary, 0);
  double whole = 0;
  for (int i = 0; i < law->size(); ++i) {
    whole += p[law->token(i)] = exp_nonpositive(law->log_p[i]);
  }
  for (double& value : p) value /= whole;
  return p;
}

using Law = std::map<std::vector<int32_t>, double>;

// The law of the first `length` tokens of plain decoding after `text`.
void plain_law(TinyModel& model, const SamplingOptions& options, std::vector<int32_t>& text,
               size_t length, double weight, Law& law) {
  if (text.size() == length) {
    law[text] += weight;
    return;
  }
  Sampler sampler(kVocabulary);
  ASSERT_TRUE(sampler.start(options, text).ok());
  const std::vector<double> p = draw_law(sampler, model.logits(text));
  for (int32_t token = 0; token < kVocabulary; ++token) {
    if (p[token] == 0) continue;
    text.push_back(token);
    plain_law(model, options, text, length, weight * p[token], law);
    text.pop_back();
  }
}

// The law of what one target_draw over `tree` emits, followed by plain decoding up to `length`
// tokens. target_draw itself is run once for every sequence of draws: to steer it, each draw's law
// is replaced by the certainty of one token, by logits that leave no other.
void verify_law(TinyModel& model, const SamplingOptions& options, const DraftTree& tree,
                size_t length, Law& law) {
  const std::vector<float> real = tree_logits(model, tree);
  std::vector<int32_t> script;
  std::function<void(double)> branch = [&](double weight) {
    // Follow the script down the tree; the node where it ends is the next draw.
    int node = DraftTree::kRoot;
    for (const int32_t token : script) node = tree.find_child(node, token);
    Sampler sampler(kVocabulary);
    ASSERT_TRUE(sampler.start(options, script).ok());
    const size_t row = static_cast<size_t>(node + 1) * kVocabulary;
    const std::vector<double> p =
        draw_law(sampler, {real.begin() + row, real.begin() + row + kVocabulary});
    for (int32_t token = 0; token < kVocabulary; ++token) {
      if (p[token] == 0) continue;
      script.push_back(token);
      if (tree.find_child(node, token) != DraftTree::kNone) {
        branch(weight * p[token]);
      } else {
        std::vector<float> forced = real;
        int at = DraftTree::kRoot;
        for (const int32_t chosen : script) {
          for (int32_t other = 0; other < kVocabulary; ++other) {
            forced[static_cast<size_t>(at + 1) * kVocabulary + other] =
                other == chosen ? 0 : -1e30f;
          }
          at = tree.find_child(at, chosen);
        }
        Sampler steered(kVocabulary);
        ASSERT_TRUE(steered.start({.temperature = 1.f}, {}).ok());
        Verdict verdict;
        ASSERT_TRUE(target_draw(tree, forced, steered, 0, {100, {}}, verdict).ok());
        ASSERT_EQ(verdict.emitted, script);
        ASSERT_EQ(verdict.accepted.size() + 1, script.size());
        std::vector<int32_t> text(verdict.emitted.begin(),
                                  verdict.emitted.begin() + std::min(length, script.size()));
        plain_law(model, options, text, length, weight * p[token], law);
      }
      script.pop_back();
    }
  };
  branch(1.0);
}

TEST(TargetDraw, TheEmittedLawIsTheTargetsOwnByEnumeration) {
  std::mt19937 random(17);
  const std::vector<SamplingOptions> settings = {
      {},
      {.temperature = 1.f},
      {.temperature = 0.6f, .top_k = 3},
      {.temperature = 1.3f, .top_p = 0.8f, .repetition_penalty = 1.4f},
      {.temperature = 0.9f, .min_p = 0.2f}};
  double worst = 0;
  for (int round = 0; round < 60; ++round) {
    TinyModel model(random());
    const SamplingOptions& options = settings[round % settings.size()];
    const DraftTree tree = random_tree(static_cast<int>(random() % 9), random);
    Law plain;
    Law verified;
    std::vector<int32_t> text;
    plain_law(model, options, text, 3, 1.0, plain);
    verify_law(model, options, tree, 3, verified);
    double total = 0;
    for (const auto& [sequence, p] : plain) {
      worst = std::max(worst, std::abs(p - verified[sequence]));
      total += verified[sequence];
    }
    ASSERT_NEAR(total, 1.0, 1e-12);
    ASSERT_EQ(verified.size(), plain.size());
  }
  EXPECT_LE(worst, 1e-12);
}

// The same uniforms, the same text: token by token without a tree, or any tree at once.
TEST(TargetDraw, AnyTreeEmitsWhatPlainDecodingDraws) {
  std::mt19937 random(5);
  for (int round = 0; round < 300; ++round) {
    TinyModel model(random());
    const SamplingOptions options{.temperature = round % 3 * 0.7f,
                                  .top_p = 0.95f,
                                  .repetition_penalty = 1.1f,
                                  .seed = random()};
    Sampler plain(kVocabulary);
    ASSERT_TRUE(plain.start(options, {}).ok());
    std::vector<int32_t> text;
    while (text.size() < 12) {
      text.push_back(plain.choose(model.logits(text), 40 + text.size()).value());
      plain.push(text.back());
    }
    const DraftTree tree = random_tree(static_cast<int>(random() % 20), random);
    Sampler sampler(kVocabulary);
    ASSERT_TRUE(sampler.start(options, {}).ok());
    Verdict verdict;
    ASSERT_TRUE(target_draw(tree, tree_logits(model, tree), sampler, 40, {100, {}}, verdict).ok());
    ASSERT_LE(verdict.emitted.size(), text.size());
    ASSERT_TRUE(std::equal(verdict.emitted.begin(), verdict.emitted.end(), text.begin()));
  }
}

TEST(TargetDraw, AFullVocabularyOfChildrenAlwaysAcceptsAndAnEmptyTreeNever) {
  std::mt19937 random(8);
  TinyModel model(3);
  DraftTree full;
  for (int32_t token = 0; token < kVocabulary; ++token) {
    full.add(DraftTree::kRoot, token, -1, -1, 0.2f);
  }
  DraftTree empty;
  for (uint64_t seed = 0; seed < 50; ++seed) {
    Sampler sampler(kVocabulary);
    Verdict verdict;
    ASSERT_TRUE(sampler.start({.temperature = 1.f, .seed = seed}, {}).ok());
    ASSERT_TRUE(target_draw(full, tree_logits(model, full), sampler, 0, {100, {}}, verdict).ok());
    EXPECT_EQ(verdict.accepted.size(), 1u);
    EXPECT_EQ(verdict.emitted.size(), 2u);
    ASSERT_TRUE(sampler.start({.temperature = 1.f, .seed = seed}, {}).ok());
    ASSERT_TRUE(target_draw(empty, tree_logits(model, empty), sampler, 0, {100, {}}, verdict).ok());
    EXPECT_EQ(verdict.accepted.size(), 0u);
    EXPECT_EQ(verdict.emitted.size(), 1u);
  }
}

TEST(TargetDraw, EmissionEndsAtAStopTokenAndAtTheLimitInsideAnAcceptedPath) {
  DraftTree chain;
  std::vector<float> logits;
  for (int depth = 0; depth <= 4; ++depth) {
    if (depth > 0) chain.add(depth - 2, depth, -1, -1, 1.f);
    std::vector<float> row(8, 0.f);
    row[depth + 1] = 5.f;  // greedy says 1, 2, 3, 4, 5
    logits.insert(logits.end(), row.begin(), row.end());
  }
  Sampler sampler(8);
  ASSERT_TRUE(sampler.start({}, {}).ok());
  Verdict verdict;
  ASSERT_TRUE(target_draw(chain, logits, sampler, 0, {100, {}}, verdict).ok());
  EXPECT_EQ(verdict.emitted, (std::vector<int32_t>{1, 2, 3, 4, 5}));
  EXPECT_EQ(verdict.accepted, (std::vector<int>{0, 1, 2, 3}));
  ASSERT_TRUE(target_draw(chain, logits, sampler, 0, {3, {}}, verdict).ok());
  EXPECT_EQ(verdict.emitted, (std::vector<int32_t>{1, 2, 3}));
  const std::vector<int32_t> eos = {7, 2};
  ASSERT_TRUE(target_draw(chain, logits, sampler, 0, {100, eos}, verdict).ok());
  EXPECT_EQ(verdict.emitted, (std::vector<int32_t>{1, 2}));
  EXPECT_EQ(verdict.accepted, (std::vector<int>{0, 1}));
}

TEST(TargetDraw, LogitsThatDoNotFitTheTreeAreRefused) {
  DraftTree tree;
  tree.add(DraftTree::kRoot, 1, -1, -1, 1.f);
  Sampler sampler(8);
  ASSERT_TRUE(sampler.start({}, {}).ok());
  Verdict verdict;
  EXPECT_FALSE(target_draw(tree, std::vector<float>(8, 0.f), sampler, 0, {100, {}}, verdict).ok());
  EXPECT_FALSE(target_draw(tree, std::vector<float>(16, 0.f), sampler, 0, {0, {}}, verdict).ok());
}

}  // namespace
}  // namespace sapwood
