// Rejection, block and traversal by exact enumeration: laws made by hand, every branch taken.
#include <gtest/gtest.h>

#include <cmath>
#include <limits>
#include <map>
#include <random>
#include <vector>

#include "tree/sampled_tree.h"
#include "verify/block.h"
#include "verify/branching.h"
#include "verify/chance.h"
#include "verify/rejection.h"
#include "verify/tiny_model.h"
#include "verify/traversal.h"
#include "verify/verifier.h"

namespace sapwood {
namespace {

constexpr float kNever = -std::numeric_limits<float>::infinity();
using Law = std::map<int32_t, double>;

struct FirstToken {
  Law law;                // of the first emitted token
  double accepted = 0;    // expected accepted nodes
  std::vector<double> p;  // the target's
};

// A step over the same target row and proposal at every node.
FirstToken enumerate(Verifier verifier, const std::vector<float>& target,
                     const std::vector<float>& proposal, const SampledGrowth& growth) {
  const int vocabulary = static_cast<int>(target.size());
  std::vector<int32_t> tokens;
  std::vector<float> log_q;
  for (int32_t t = 0; t < vocabulary; ++t) {
    if (proposal[t] == kNever) continue;
    tokens.push_back(t);
    log_q.push_back(proposal[t]);
  }
  const Candidates candidates{tokens, log_q, 0};
  const std::unique_ptr<Pruning> everything = no_pruning(Candidates::kMost);
  const SamplingOptions options{.temperature = 1.f};
  Sampler sampler(vocabulary);
  FirstToken result;
  EXPECT_TRUE(sampler.start(options, {}).ok());
  result.p = probabilities(sampler.law(target).value(), vocabulary);
  SampledTreeGrower grower;
  DraftTree tree;
  Proposals proposals;
  VerifyWorkspace workspace(vocabulary);
  Verdict verdict;
  BranchingChance chance;
  double whole = 0;
  do {
    chance.rewind();
    tree.clear();
    proposals.clear();
    const auto expand = [&](int) -> Result<Expansion> { return Expansion{candidates, 0.5f}; };
    EXPECT_TRUE(grower.grow(growth, everything.get(), expand, chance, tree, proposals).ok());
    EXPECT_TRUE(check_fit(verifier, TreeOrigin::kSampled, tree, &proposals).ok());
    std::vector<float> logits;
    for (int row = 0; row <= tree.size(); ++row) {
      logits.insert(logits.end(), target.begin(), target.end());
    }
    LogitLaws laws(tree, logits, sampler);
    const SampledDraft draft{tree, proposals};
    const VerifyLimits limits{100, {}};
    const Status status = verifier == Verifier::kRejection
                              ? rejection(draft, laws, chance, limits, workspace, verdict)
                          : verifier == Verifier::kBlock
                              ? block(draft, laws, chance, limits, workspace, verdict)
                              : traversal(draft, laws, chance, limits, workspace, verdict);
    EXPECT_TRUE(status.ok()) << status.message();
    EXPECT_EQ(verdict.emitted.size(), verdict.accepted.size() + 1);
    for (size_t i = 0; i < verdict.accepted.size(); ++i) {
      EXPECT_EQ(tree.token(verdict.accepted[i]), verdict.emitted[i]);
    }
    result.law[verdict.emitted[0]] += chance.weight();
    result.accepted += chance.weight() * static_cast<double>(verdict.accepted.size());
    whole += chance.weight();
  } while (chance.advance());
  EXPECT_NEAR(whole, 1.0, 1e-12);
  return result;
}

// `children` drawn a node, `depth` levels.
FirstToken enumerate(Verifier verifier, const std::vector<float>& target,
                     const std::vector<float>& proposal, int children, int depth) {
  return enumerate(verifier, target, proposal, SampledGrowth{40, depth, children});
}

void expect_lossless(const FirstToken& result) {
  for (size_t t = 0; t < result.p.size(); ++t) {
    const auto found = result.law.find(static_cast<int32_t>(t));
    EXPECT_NEAR(found == result.law.end() ? 0.0 : found->second, result.p[t], 1e-12) << t;
    // Not merely improbable: a token of probability zero is on no branch.
    if (result.p[t] == 0) {
      EXPECT_EQ(found, result.law.end()) << t;
    }
  }
}

constexpr Verifier kTreeVerifiers[] = {Verifier::kRejection, Verifier::kTraversal};
constexpr Verifier kAllVerifiers[] = {Verifier::kRejection, Verifier::kTraversal, Verifier::kBlock};

TEST(Verifiers, ATokenOfProbabilityZeroNeverComesOutThoughItWasDrafted) {
  const std::vector<float> target = {0.f, kNever, 1.f, kNever};
  const std::vector<float> proposal = {-1.f, 0.f, -3.f, 0.5f};
  for (const Verifier verifier : kAllVerifiers) {
    const int children = verifier == Verifier::kBlock ? 1 : 3;
    expect_lossless(enumerate(verifier, target, proposal, children, children == 1 ? 3 : 1));
    expect_lossless(enumerate(verifier, target, proposal, std::min(children, 2), 2));
  }
}

TEST(Verifiers, DisjointSupportsRejectEverythingAndStillEmitTheTarget) {
  const std::vector<float> target = {kNever, kNever, 0.f, 0.7f};
  const std::vector<float> proposal = {0.f, 0.3f, kNever, kNever};
  for (const Verifier verifier : kAllVerifiers) {
    const int children = verifier == Verifier::kBlock ? 1 : 2;
    const FirstToken result = enumerate(verifier, target, proposal, children, 2);
    expect_lossless(result);
    EXPECT_EQ(result.accepted, 0.0);
  }
}

TEST(Verifiers, EqualLawsAcceptEverything) {
  const std::vector<float> law = {0.f, 0.f, 0.f};  // ties as well
  for (const Verifier verifier : kAllVerifiers) {
    const FirstToken result = enumerate(verifier, law, law, 1, 3);
    expect_lossless(result);
    EXPECT_NEAR(result.accepted, 3.0, 1e-12);
  }
}

TEST(Verifiers, ATargetOfOneTokenAcceptsItWhereverItWasDrawn) {
  const std::vector<float> target = {kNever, 0.f, kNever};
  const std::vector<float> proposal = {0.f, 0.f, 0.f};
  for (const Verifier verifier : kTreeVerifiers) {
    const FirstToken result = enumerate(verifier, target, proposal, 3, 1);
    expect_lossless(result);
    EXPECT_NEAR(result.accepted, 1.0, 1e-12);
  }
  expect_lossless(enumerate(Verifier::kBlock, target, proposal, 1, 3));
}

TEST(Verifiers, ADraftOfOneTokenIsAcceptedAsOftenAsTheTargetWantsIt) {
  const std::vector<float> target = {0.f, 1.f, -1.f};
  const std::vector<float> proposal = {kNever, 0.f, kNever};
  for (const Verifier verifier : kAllVerifiers) {
    const FirstToken result = enumerate(verifier, target, proposal, 1, 1);
    expect_lossless(result);
    EXPECT_NEAR(result.accepted, result.p[1], 1e-12);
  }
}

TEST(Verifiers, AWholeVocabularyOfChildrenIsAlwaysAccepted) {
  const std::vector<float> target = {0.f, 1.f, -2.f, 0.4f};
  const std::vector<float> proposal = {1.f, -1.f, 0.f, 0.f};
  for (const Verifier verifier : kTreeVerifiers) {
    const FirstToken result = enumerate(verifier, target, proposal, 4, 1);
    expect_lossless(result);
    EXPECT_NEAR(result.accepted, 1.0, 1e-12);
  }
}

// A residual is never empty: rounding must not leave mass where no token is. Every choice that the
// enumerator makes here has something to choose from, on branches of probability 1e-17 too.
TEST(Verifiers, AProposalThatCoversTheTargetLeavesNoPhantomMassOutside) {
  struct Watch final : Chance {
    explicit Watch(Chance& inner) : inner(inner) {}
    bool accept(double log_probability) override {
      return std::isnan(log_probability) ? false : inner.accept(log_probability);
    }
    int choose(std::span<const double> weights) override {
      double whole = 0;
      for (const double weight : weights) whole += weight;
      EXPECT_GT(whole, 0.0);
      return inner.choose(weights);
    }
    Chance& inner;
  };
  std::mt19937 random(3);
  std::normal_distribution<float> normal(0, 2);
  for (int round = 0; round < 200; ++round) {
    std::vector<float> scores(3);
    for (float& x : scores) x = normal(random);
    Sampler sampler(3);
    ASSERT_TRUE(sampler.start({.temperature = 1.f}, {}).ok());
    const TokenLaw law = sampler.law(scores).value();
    Proposals proposals;
    const std::vector<int32_t> tokens = {2, 0, 1};
    for (float& x : scores) x = normal(random);
    ASSERT_TRUE(proposals.set(DraftTree::kRoot, tokens, scores));
    std::vector<double> weights(3);
    BranchingChance chance;
    Watch watch(chance);
    do {
      chance.rewind();
      Residual residual;
      residual.start(law, proposals.at(DraftTree::kRoot));
      for (int entry = 0; entry < 3; ++entry) {
        if (watch.accept(residual.log_ratio(entry))) break;
        residual.reject(entry, 1.0);
      }
      residual.draw(law, weights, watch);
    } while (chance.advance());
  }
}

TEST(Verifiers, TreesOfAGivenShapeAndChainsCutByEntropyAreLosslessToo) {
  const std::vector<float> target = {0.f, 1.f, -2.f, 0.4f};
  const std::vector<float> proposal = {1.f, -1.f, 0.f, kNever};
  const TreeShape shape = TreeShape::likeliest(std::vector<float>{0.5f, 0.4f}, 4);
  SampledGrowth growth;
  growth.max_nodes = growth.max_depth = 4;
  growth.shape = &shape;
  for (const Verifier verifier : kTreeVerifiers) {
    const FirstToken result = enumerate(verifier, target, proposal, growth);
    expect_lossless(result);
    EXPECT_GT(result.accepted, enumerate(verifier, target, proposal, 1, 1).accepted);
  }
  growth = {.max_nodes = 3, .max_depth = 3, .max_children = 1, .length_by_entropy = true};
  for (const Verifier verifier : kAllVerifiers) {
    expect_lossless(enumerate(verifier, target, proposal, growth));
  }
}

TEST(Verifiers, AnEmptyTreeIsPlainDecoding) {
  const std::vector<float> target = {0.f, 1.f, -2.f};
  for (const Verifier verifier : kAllVerifiers) {
    const FirstToken result = enumerate(verifier, target, target, 1, 0);
    expect_lossless(result);
    EXPECT_EQ(result.accepted, 0.0);
  }
}

TEST(Verifiers, OneChildAtDepthOneReachesTheMaximalCoupling) {
  std::mt19937 random(4);
  std::normal_distribution<float> normal(0, 2);
  for (int round = 0; round < 50; ++round) {
    std::vector<float> target(5);
    std::vector<float> proposal(5);
    for (float& x : target) x = normal(random);
    for (float& x : proposal) x = normal(random);
    Sampler sampler(5);
    ASSERT_TRUE(sampler.start({.temperature = 1.f}, {}).ok());
    const std::vector<double> p = probabilities(sampler.law(target).value(), 5);
    double whole = 0;
    double coupling = 0;
    for (const float x : proposal) whole += std::exp(static_cast<double>(x));
    for (int t = 0; t < 5; ++t) {
      coupling += std::min(p[t], std::exp(static_cast<double>(proposal[t])) / whole);
    }
    for (const Verifier verifier : kAllVerifiers) {
      const FirstToken result = enumerate(verifier, target, proposal, 1, 1);
      expect_lossless(result);
      EXPECT_NEAR(result.accepted, coupling, 1e-12);
    }
  }
}

TEST(Verifiers, TraversalIsRejectionAtDepthOneAndBlockOnAChain) {
  const std::vector<float> target = {0.3f, 1.f, -2.f, 0.4f};
  const std::vector<float> proposal = {1.f, -1.f, 0.2f, 0.f};
  EXPECT_NEAR(enumerate(Verifier::kTraversal, target, proposal, 3, 1).accepted,
              enumerate(Verifier::kRejection, target, proposal, 3, 1).accepted, 1e-12);
  EXPECT_NEAR(enumerate(Verifier::kTraversal, target, proposal, 1, 4).accepted,
              enumerate(Verifier::kBlock, target, proposal, 1, 4).accepted, 1e-12);
}

TEST(Verifiers, StopTokensAndLimitsCutWhatIsEmitted) {
  DraftTree tree;
  Proposals proposals;
  CounterChance chance(1, RandomStream::kDraft, 0);
  std::vector<float> logits;
  for (int depth = 0; depth <= 3; ++depth) {
    std::vector<float> row(6, kNever);
    row[depth + 1] = 0.f;
    logits.insert(logits.end(), row.begin(), row.end());
    if (depth == 3) break;
    const std::vector<int32_t> tokens = {depth + 1};
    ASSERT_TRUE(proposals.set(depth - 1, tokens, std::vector<float>{0.f}));
    ASSERT_EQ(proposals.draw(depth - 1, chance), 0);
    tree.add(depth - 1, depth + 1, 0.f, 0.f, 1.f);
  }
  Sampler sampler(6);
  ASSERT_TRUE(sampler.start({.temperature = 1.f}, {}).ok());
  VerifyWorkspace workspace(6);
  LogitLaws laws(tree, logits, sampler);
  Verdict verdict;
  const SampledDraft draft{tree, proposals};
  for (const auto verify : {&rejection, &block, &traversal}) {
    ASSERT_TRUE(verify(draft, laws, chance, {100, {}}, workspace, verdict).ok());
    EXPECT_EQ(verdict.emitted, (std::vector<int32_t>{1, 2, 3, 4}));
    ASSERT_TRUE(verify(draft, laws, chance, {2, {}}, workspace, verdict).ok());
    EXPECT_EQ(verdict.emitted, (std::vector<int32_t>{1, 2}));
    EXPECT_EQ(verdict.accepted, (std::vector<int>{0, 1}));
    const std::vector<int32_t> stop = {3};
    ASSERT_TRUE(verify(draft, laws, chance, {100, stop}, workspace, verdict).ok());
    EXPECT_EQ(verdict.emitted, (std::vector<int32_t>{1, 2, 3}));
  }
}

TEST(Chance, AUniformOfZeroAcceptsNoImpossibleTokenAndDrawsNone) {
  EXPECT_FALSE(accept_by_uniform(-std::numeric_limits<double>::infinity(), 0.0));
  EXPECT_FALSE(accept_by_uniform(std::numeric_limits<double>::quiet_NaN(), 0.0));
  EXPECT_TRUE(accept_by_uniform(-700.0, 0.0));
  EXPECT_FALSE(accept_by_uniform(std::log(0.5), 0.5));
  const std::vector<double> weights = {0.0, 0.0, 0.3, 0.0, 0.7, 0.0};
  EXPECT_EQ(choose_by_uniform(weights, 0.0), 2);
  EXPECT_EQ(choose_by_uniform(weights, std::nextafter(1.0, 0.0)), 4);
}

TEST(Chance, TheCounterGivesEachStepItsOwnNumbers) {
  CounterChance first(9, RandomStream::kAcceptance, 3);
  CounterChance again(9, RandomStream::kAcceptance, 3);
  CounterChance later(9, RandomStream::kAcceptance, 4);
  const std::vector<double> weights(1000, 1.0);
  int same = 0;
  for (int i = 0; i < 50; ++i) {
    const int drawn = first.choose(weights);
    EXPECT_EQ(drawn, again.choose(weights));
    same += drawn == later.choose(weights) ? 1 : 0;
  }
  EXPECT_LT(same, 5);
}

TEST(VerifierFit, WhatWouldBiasTheTextIsRefusedByName) {
  DraftTree tree;
  Proposals proposals;
  CounterChance chance(1, RandomStream::kDraft, 0);
  const std::vector<int32_t> tokens = {4, 5, 6};
  const std::vector<float> log_q = {-1.f, -1.f, -1.f};
  ASSERT_TRUE(proposals.set(DraftTree::kRoot, tokens, log_q));
  for (int i = 0; i < 2; ++i) {
    const int entry = proposals.draw(DraftTree::kRoot, chance);
    tree.add(DraftTree::kRoot, tokens[entry], -1, -1, 0.5f);
  }
  const auto why = [&](Verifier verifier, TreeOrigin origin, const Proposals* with) {
    const Status status = check_fit(verifier, origin, tree, with);
    return status.ok() ? std::string("fits") : status.message();
  };
  EXPECT_EQ(why(Verifier::kTargetDraw, TreeOrigin::kRanked, nullptr), "fits");
  EXPECT_EQ(why(Verifier::kTargetDraw, TreeOrigin::kReranked, nullptr), "fits");
  EXPECT_EQ(why(Verifier::kRejection, TreeOrigin::kSampled, &proposals), "fits");
  EXPECT_EQ(why(Verifier::kTraversal, TreeOrigin::kSampled, &proposals), "fits");
  EXPECT_NE(why(Verifier::kRejection, TreeOrigin::kRanked, &proposals).find("chosen by rank"),
            std::string::npos);
  EXPECT_NE(why(Verifier::kTraversal, TreeOrigin::kReranked, &proposals).find("re-ranked"),
            std::string::npos);
  EXPECT_NE(why(Verifier::kRejection, TreeOrigin::kSampled, nullptr).find("no log q"),
            std::string::npos);
  EXPECT_NE(why(Verifier::kBlock, TreeOrigin::kSampled, &proposals).find("needs a chain"),
            std::string::npos);
  tree.truncate(1);  // a drawn node goes missing
  EXPECT_NE(why(Verifier::kRejection, TreeOrigin::kSampled, &proposals).find("every drawn node"),
            std::string::npos);
  tree.clear();
  tree.add(DraftTree::kRoot, 4, -1, -1, 0.5f);
  tree.add(DraftTree::kRoot, 7, -1, -1, 0.5f);  // a node that no proposal knows
  EXPECT_NE(why(Verifier::kTraversal, TreeOrigin::kSampled, &proposals).find("no log q"),
            std::string::npos);
}

TEST(VerifierFit, NamesComeBackAsTheVerifiersTheyName) {
  for (const Verifier verifier :
       {Verifier::kTargetDraw, Verifier::kRejection, Verifier::kBlock, Verifier::kTraversal}) {
    EXPECT_EQ(parse_verifier(verifier_name(verifier)), verifier);
  }
  EXPECT_FALSE(parse_verifier("typical").has_value());
}

}  // namespace
}  // namespace sapwood
