// Sessions with the verifiers of drawn drafts. That they keep the law of the text is tested in
// session_law_test.cc; here: what they refuse, where they stop, and that no slot is lost.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <vector>

#include "draft/drafters.h"
#include "drafter_parts.h"
#include "engine/session.h"
#include "fake_model.h"
#include "session_answer.h"

namespace sapwood {
namespace {

constexpr std::array<Mode, 3> kDraftingModes = {Mode::kChain, Mode::kFixed, Mode::kDynamic};
constexpr std::array<Verifier, 3> kOfDraws = {Verifier::kRejection, Verifier::kTraversal,
                                              Verifier::kBlock};

bool fits(Verifier verifier, Mode mode) {
  return verifier != Verifier::kBlock || mode != Mode::kFixed;
}

std::unique_ptr<Session> open_session(std::shared_ptr<Model> model,
                                      std::unique_ptr<Drafter> drafter) {
  SessionOptions options;
  options.context_length = 300;
  options.max_tree_nodes = 20;
  options.drafter = std::move(drafter);
  options.measured_costs = {{64}, {1, 64}, {1.0, 1.2}};
  options.learn_costs = false;
  Result<std::unique_ptr<Session>> session = Session::create(std::move(model), std::move(options));
  EXPECT_TRUE(session.ok()) << session.status().message();
  return std::move(session).value();
}

// Offers what a test tells it to; draws it from a proposal of one token a node.
class Told final : public Drafter {
 public:
  const DrafterTraits& traits() const override { return traits_; }
  Status start(std::span<const int32_t>, int) override { return Status::okay(); }
  void follow(std::span<const int32_t>) override {}
  Status propose(const DraftRequest&, DraftTree&) override { return Status::okay(); }
  Status propose_sampled(const DraftRequest& request, Chance& chance, DraftTree& tree,
                         Proposals& proposals) override {
    seen = request;
    seeds.insert(request.sampling.seed);
    const std::array<int32_t, 2> tokens = {1, 2};
    const std::array<float, 2> log_q = {-0.5f, -1.f};
    proposals.set(DraftTree::kRoot, tokens, log_q);
    for (int i = 0; i < children; ++i) {
      const int entry = proposals.draw(DraftTree::kRoot, chance);
      if (i >= lost) tree.add(DraftTree::kRoot, tokens[static_cast<size_t>(entry)], -1, -1, 0.5f);
    }
    return Status::okay();
  }

  DrafterTraits traits_{.name = "told", .gives_proposals = true};
  int children = 1;
  int lost = 0;  // drawn, and not put into the tree
  DraftRequest seen;
  std::set<uint64_t> seeds;
};

TEST(SessionVerifier, EveryOneGivesTheGreedyTextAtTemperatureZero) {
  std::mt19937 random(5);
  int64_t accepted = 0;
  for (int round = 0; round < 20; ++round) {
    const auto model = std::make_shared<FakeModel>(FakeModel::Options{
        .vocabulary = 8 + static_cast<int>(random() % 30), .max_rows = 24, .habit = 5.f});
    GenerateOptions options;
    options.max_new_tokens = 60;
    options.mode = Mode::kPlain;
    const Text prompt = {1, 2, 3, static_cast<int32_t>(random() % 8)};
    const Text expected =
        answer(*open_session(model, make_drafter("none").value()), prompt, options);
    for (const std::string_view drafter : kDrafterNames) {
      auto made = make_drafter(drafter, parts_of(drafter, *model)).value();
      if (!made->traits().gives_proposals) continue;
      const auto session = open_session(model, std::move(made));
      for (const Verifier verifier : kOfDraws) {
        for (const Mode mode : kDraftingModes) {
          if (!fits(verifier, mode)) continue;
          options.mode = mode;
          options.verifier = verifier;
          ASSERT_EQ(answer(*session, prompt, options), expected)
              << drafter << ' ' << verifier_name(verifier) << ' ' << mode_name(mode);
          accepted += session->stats().accepted_tokens;
        }
      }
    }
    ASSERT_EQ(model->damaged_slots, 0);
  }
  EXPECT_GT(accepted, 1000);
}

TEST(SessionVerifier, SampledTextsEndWhereTheyShouldAndNoSlotIsDamaged) {
  std::mt19937 random(6);
  std::array<int64_t, 3> accepted{};
  for (int round = 0; round < 60; ++round) {
    const int context = 30 + static_cast<int>(random() % 100);
    const auto model = std::make_shared<FakeModel>(
        FakeModel::Options{.vocabulary = 8 + static_cast<int>(random() % 30),
                           .max_rows = 2 + static_cast<int>(random() % 30),
                           .habit = 6.f});
    SessionOptions session_options;
    session_options.context_length = context;
    session_options.measured_costs = {{64}, {1, 64}, {1.0, 1.2}};
    const auto session = std::move(Session::create(model, std::move(session_options))).value();
    GenerateOptions options;
    options.max_new_tokens = 1 + static_cast<int>(random() % 90);
    options.eos_token_ids = {3};
    options.sampling = {.temperature = 0.8f,
                        .top_k = round % 3 == 0 ? 5 : 0,
                        .top_p = round % 4 == 0 ? 0.9f : 1.f,
                        .repetition_penalty = round % 2 == 0 ? 1.1f : 1.f,
                        .seed = random()};
    options.adapt = round % 2 == 1;
    for (size_t v = 0; v < kOfDraws.size(); ++v) {
      for (const Mode mode : kDraftingModes) {
        if (!fits(kOfDraws[v], mode)) continue;
        options.mode = mode;
        options.verifier = kOfDraws[v];
        const Text text = answer(*session, {1, 2, 1, 2, 1}, options);
        const auto eos = std::find(text.begin(), text.end(), 3);
        const StopReason reason = session->stop_reason();
        ASSERT_TRUE(eos == text.end() || eos + 1 == text.end());
        ASSERT_EQ(reason, eos != text.end() ? StopReason::kEos
                          : static_cast<int>(text.size()) == options.max_new_tokens
                              ? StopReason::kLength
                              : StopReason::kContext);
        ASSERT_LE(static_cast<int>(text.size()), options.max_new_tokens);
        const SessionStats& stats = session->stats();
        ASSERT_EQ(stats.verifier, kOfDraws[v]);
        ASSERT_EQ(stats.steps + stats.drafted_tokens, stats.rows_verified);
        ASSERT_GE(stats.peak_draft_slots, stats.mean_draft_slots());
        ASSERT_LE(stats.peak_draft_slots, stats.peak_kv_slots);
        accepted[v] += stats.accepted_tokens;
      }
    }
    ASSERT_EQ(model->damaged_slots, 0) << round;
    ASSERT_LT(model->highest_position, context);
  }
  for (const int64_t each : accepted) EXPECT_GT(each, 500) << "nothing was tested";
}

TEST(SessionVerifier, AFreshSessionGivesTheSameTextForTheSameSeedAndAnotherForAnother) {
  const auto model = std::make_shared<FakeModel>(FakeModel::Options{.vocabulary = 30});
  GenerateOptions options;
  options.max_new_tokens = 40;
  options.sampling = {.temperature = 1.f, .seed = 9};
  for (const Verifier verifier : kOfDraws) {
    options.verifier = verifier;
    const auto fresh = [&] {
      return answer(*open_session(model, make_drafter("mix").value()), {1, 2, 1, 2}, options);
    };
    options.sampling.seed = 9;
    const Text first = fresh();
    EXPECT_EQ(fresh(), first);
    options.sampling.seed = 10;
    EXPECT_NE(fresh(), first);
  }
}

TEST(SessionVerifier, WhatDoesNotFitIsRefusedInOneLineAndChangesNothing) {
  const auto model = std::make_shared<FakeModel>(FakeModel::Options{});
  auto told = std::make_unique<Told>();
  Told& drafter = *told;
  const auto session = open_session(model, std::move(told));
  GenerateOptions options;
  options.max_new_tokens = 3;
  const Text before = answer(*session, {1, 2}, options);
  const auto refusal = [&] {
    const Status status = session->start(Text{4, 5, 6}, options);
    EXPECT_EQ(status.code(), Code::kInvalidArgument);
    EXPECT_EQ(status.message().find('\n'), std::string::npos);
    EXPECT_EQ(session->stats().emitted_tokens, 3);
    EXPECT_EQ(session->tokens().size(), 5u);
    return status.message();
  };
  options.mode = Mode::kFixed;
  options.verifier = Verifier::kBlock;
  EXPECT_NE(refusal().find("judges chains"), std::string::npos);
  options.mode = Mode::kDynamic;
  options.controller.beta_base = 3;
  EXPECT_NE(refusal().find("beta_base"), std::string::npos);
  options.controller = {};
  drafter.traits_.gives_proposals = false;
  for (const Verifier verifier : kOfDraws) {
    options.verifier = verifier;
    EXPECT_NE(refusal().find("told cannot say which laws"), std::string::npos);
  }
  options.mode = Mode::kPlain;  // which drafts nothing
  EXPECT_TRUE(session->start(Text{4, 5, 6}, options).ok());
}

TEST(SessionVerifier, ATreeThatWouldBiasTheTextIsNotVerified) {
  const auto model = std::make_shared<FakeModel>(FakeModel::Options{});
  auto told = std::make_unique<Told>();
  Told& drafter = *told;
  const auto session = open_session(model, std::move(told));
  GenerateOptions options;
  options.max_new_tokens = 9;
  options.sampling.temperature = 1.f;
  const auto why = [&](Verifier verifier, int children, int lost) {
    options.verifier = verifier;
    drafter.children = children;
    drafter.lost = lost;
    EXPECT_TRUE(session->start(Text{4, 5, 6}, options).ok());
    EXPECT_GT(session->step().value().size(), 0u);
    if (session->stats().watchdog.empty()) return std::string("verified");
    EXPECT_EQ(session->stats().drafted_tokens, 0);
    return session->stats().watchdog;
  };
  EXPECT_EQ(why(Verifier::kRejection, 2, 0), "verified");
  EXPECT_EQ(why(Verifier::kBlock, 1, 0), "verified");
  EXPECT_NE(why(Verifier::kBlock, 2, 0).find("needs a chain"), std::string::npos);
  EXPECT_NE(why(Verifier::kTraversal, 2, 1).find("every drawn node"), std::string::npos);
  EXPECT_EQ(why(Verifier::kTargetDraw, 2, 0), "verified");  // by rank: this drafter has nothing
}

TEST(SessionVerifier, ADrafterIsToldTheTransformButNeverTheSeed) {
  const auto model = std::make_shared<FakeModel>(FakeModel::Options{});
  auto told = std::make_unique<Told>();
  Told& drafter = *told;
  const auto session = open_session(model, std::move(told));
  GenerateOptions options;
  options.max_new_tokens = 9;
  options.sampling = {.temperature = 0.7f, .top_k = 12, .seed = 77};
  options.verifier = Verifier::kBlock;
  answer(*session, {4, 5, 6}, options);
  EXPECT_EQ(drafter.seen.sampling.temperature, 0.7f);
  EXPECT_EQ(drafter.seen.sampling.top_k, 12);
  EXPECT_EQ(drafter.seen.max_width, 1);  // block wants chains
  EXPECT_NE(drafter.seen.pruning, nullptr);
  EXPECT_EQ(drafter.seeds, std::set<uint64_t>{0});
}

TEST(SessionVerifier, ADrafterThatOnlyDrawsGivesThePlainTextUnderTargetDraw) {
  const auto model = std::make_shared<FakeModel>(FakeModel::Options{.vocabulary = 4, .habit = 1.f});
  GenerateOptions options;
  options.max_new_tokens = 200;
  for (const float temperature : {0.f, 1.f}) {
    options.sampling = {.temperature = temperature, .seed = 5};
    options.mode = Mode::kPlain;
    const Text expected =
        answer(*open_session(model, make_drafter("none").value()), {1, 2}, options);
    auto told = std::make_unique<Told>();
    told->traits_.deterministic = false;
    const auto session = open_session(model, std::move(told));
    for (const Mode mode : kDraftingModes) {
      options.mode = mode;
      EXPECT_EQ(answer(*session, {1, 2}, options), expected);
      EXPECT_GT(session->stats().accepted_tokens, 10);
    }
  }
}

// On a chain the two are one rule, and ask for their random numbers in the same order.
TEST(SessionVerifier, TraversalOfAChainIsBlockVerificationBitForBit) {
  for (uint64_t seed = 0; seed < 30; ++seed) {
    const auto model = std::make_shared<FakeModel>(FakeModel::Options{.vocabulary = 9});
    GenerateOptions options;
    options.mode = Mode::kChain;
    options.chain_length = 1 + static_cast<int>(seed % 6);
    options.max_new_tokens = 60;
    options.sampling = {.temperature = 0.9f, .seed = seed};
    options.verifier = Verifier::kBlock;
    const Text by_block =
        answer(*open_session(model, make_drafter("mix").value()), {1, 2, 1, 2}, options);
    options.verifier = Verifier::kTraversal;
    const auto session = open_session(model, make_drafter("mix").value());
    EXPECT_EQ(answer(*session, {1, 2, 1, 2}, options), by_block);
    EXPECT_GT(session->stats().drafted_tokens, 20);
  }
}

// A tree of width one is the chain: the same draft, the same rows, the same text.
TEST(SessionVerifier, ATreeOfWidthOneIsTheChainBitForBit) {
  for (const Verifier verifier :
       {Verifier::kTargetDraw, Verifier::kRejection, Verifier::kTraversal}) {
    for (uint64_t seed = 0; seed < 10; ++seed) {
      const auto model = std::make_shared<FakeModel>(FakeModel::Options{.vocabulary = 9});
      GenerateOptions options;
      options.max_new_tokens = 60;
      options.chain_length = 2;
      options.fixed_nodes = 2;  // by acceptance 0.5 and 0.2, a root's child and its child
      options.sampling = {.temperature = 0.9f, .seed = seed};
      options.verifier = verifier;
      options.mode = Mode::kChain;
      const auto chain = open_session(model, make_drafter("mix").value());
      const Text expected = answer(*chain, {1, 2, 1, 2}, options);
      options.mode = Mode::kFixed;
      const auto tree = open_session(model, make_drafter("mix").value());
      EXPECT_EQ(answer(*tree, {1, 2, 1, 2}, options), expected) << verifier_name(verifier);
      EXPECT_EQ(tree->stats().rows_verified, chain->stats().rows_verified);
      EXPECT_EQ(tree->stats().accepted_tokens, chain->stats().accepted_tokens);
    }
  }
}

TEST(SessionVerifier, BetaFollowsTheLengthOfTheSteps) {
  const auto model = std::make_shared<FakeModel>(FakeModel::Options{.vocabulary = 30});
  const auto session = open_session(model, make_drafter("mix").value());
  GenerateOptions options;
  options.max_new_tokens = 60;
  options.sampling = {.temperature = 1.f, .seed = 5};
  options.verifier = Verifier::kTraversal;
  answer(*session, {1, 2, 3}, options);
  EXPECT_DOUBLE_EQ(session->stats().beta, static_cast<double>(options.controller.beta_base));
  options.adapt = true;
  answer(*session, {1, 2, 3}, options);
  ASSERT_LT(session->stats().mean_accepted_length(), 3.5);
  EXPECT_GT(session->stats().beta, 0.35);  // shorter than wanted: prune more
}

TEST(SessionVerifier, AChainByEntropyIsLongWhereTheDraftIsCertainAndAtMostEightLong) {
  const auto model = std::make_shared<FakeModel>(
      FakeModel::Options{.vocabulary = 6, .max_rows = 32, .habit = 9.f});
  for (const Verifier verifier : {Verifier::kTargetDraw, Verifier::kBlock}) {
    for (const float temperature : {0.f, 0.5f}) {
      const auto session = open_session(model, make_drafter("ngram").value());
      GenerateOptions options;
      options.mode = Mode::kChain;
      options.verifier = verifier;
      options.adapt = true;
      options.length_rule = LengthRule::kEntropy;
      options.max_new_tokens = 200;
      options.sampling.temperature = temperature;
      ASSERT_TRUE(session->start(Text{1, 2, 3}, options).ok());
      std::array<int, 21> lengths{};
      while (!session->step().value().empty()) ++lengths[session->last_tree().size()];
      EXPECT_GT(lengths[8], 0);
      for (int n = 9; n < 21; ++n) EXPECT_EQ(lengths[static_cast<size_t>(n)], 0);
    }
  }
}

}  // namespace
}  // namespace sapwood
