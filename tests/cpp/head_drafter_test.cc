// Drafters over trained drafts: the hidden states they get, what the text is, and what it costs.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <memory>
#include <numeric>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include "draft/drafters.h"
#include "draft/mix_drafter.h"
#include "engine/session.h"
#include "fake_draft.h"
#include "fake_model.h"
#include "make_test_bundle.h"
#include "make_test_draft.h"
#include "measure/allocation_counter.h"
#include "model/native.h"
#include "session_answer.h"
#include "verify/chance.h"

namespace sapwood {
namespace {

constexpr std::array<Mode, 3> kModes = {Mode::kChain, Mode::kFixed, Mode::kDynamic};
constexpr FakeModel::Options kTarget{.vocabulary = 50, .max_rows = 40, .habit = 6.f};

ModelDrafterOptions cheap_passes() {
  return {.cost = CostCurve::measured(std::array<int, 2>{1, 64}, std::array<double, 2>{0.02, 0.03}),
          .learn_costs = false};
}

std::unique_ptr<Session> session_of(std::shared_ptr<Model> target,
                                    std::shared_ptr<const TrainedDraft> draft,
                                    std::string_view drafter, int context = 400) {
  const DrafterParts parts{.draft = std::move(draft), .model_options = cheap_passes()};
  return session_of(std::move(target), make_drafter(drafter, parts).value(), context);
}

std::shared_ptr<FakeDraft> fake_draft(int max_rows = 24) {
  return std::make_shared<FakeDraft>(FakeDraft::Options{.vocabulary = 50, .max_rows = max_rows});
}

TEST(HeadDrafter, IsShownTheHiddenStatesOfEveryVerifiedPositionHoweverAnswersGo) {
  std::mt19937 random(21);
  for (const std::string drafter : {"head", "cascade"}) {
    for (int round = 0; round < 4; ++round) {
      // Few rows a pass: prompts come in pieces that fit neither the target's nor the draft's.
      const auto target = std::make_shared<FakeModel>(FakeModel::Options{
          .vocabulary = 50, .max_rows = 8 + static_cast<int>(random() % 30), .habit = 6.f});
      const auto draft = fake_draft(3 + static_cast<int>(random() % 60));
      const auto session = session_of(target, draft, drafter);
      const auto plain = session_of(std::make_shared<FakeModel>(kTarget), fake_draft(), "head");
      Text prompt = {1};
      for (int answers = 0; answers < 8; ++answers) {
        // Goes on from the last text, from a part of it, or anew; sometimes cut or undrafted.
        if (answers % 3 != 1) prompt.resize(1 + random() % prompt.size());
        for (size_t more = random() % 70; more > 0 && prompt.size() < 200; --more) {
          prompt.push_back(static_cast<int32_t>(random() % 50));
        }
        const bool undrafted = random() % 4 == 0;
        GenerateOptions options =
            answer_options(kModes[random() % 3], 1 + random() % 60, random() % 2 == 0 ? 0.f : 0.9f);
        options.adapt = random() % 2 == 0;
        GenerateOptions without = options;
        without.mode = Mode::kPlain;
        if (undrafted) options.mode = Mode::kPlain;
        const Text expected = answer(*plain, prompt, without);
        ASSERT_EQ(answer(*session, prompt, options), expected) << drafter << ' ' << round;
        if (random() % 4 == 0) {
          ASSERT_TRUE(session->finish_at(session->stats().emitted_tokens / 2).ok());
        }
        prompt.assign(session->tokens().begin(), session->tokens().end());
        if (prompt.size() > 300) prompt.resize(50);
      }
      EXPECT_EQ(draft->counts->damage, 0);
      EXPECT_EQ(target->damaged_slots, 0);
      EXPECT_GT(draft->counts->nodes, 20);
    }
  }
}

TEST(HeadDrafter, ReadsAPromptOnceAndWhatWasKeptOfItNotAgain) {
  const auto target = std::make_shared<FakeModel>(kTarget);
  const auto draft = fake_draft(40);
  const auto session = session_of(target, draft, "head");
  Text prompt(150);
  for (size_t i = 0; i < prompt.size(); ++i) prompt[i] = static_cast<int32_t>(i * i % 50);
  const GenerateOptions options = answer_options(Mode::kChain, 20);
  const Text first = answer(*session, prompt, options);
  EXPECT_LT(draft->counts->text_rows, 150 + 2 * 20);
  prompt.insert(prompt.end(), first.begin(), first.end());
  prompt.insert(prompt.end(), {7, 8, 9});
  const int64_t read = draft->counts->text_rows;
  answer(*session, prompt, options);
  EXPECT_GE(session->stats().reused_prompt_tokens, 168);
  EXPECT_LT(draft->counts->text_rows - read, 60);
  // After an answer that was not drafted the target goes over what the draft lacks.
  const Text third = answer(*session, {5, 6, 7}, answer_options(Mode::kPlain, 30));
  prompt = {5, 6, 7};
  prompt.insert(prompt.end(), third.begin(), third.end());
  answer(*session, prompt, options);
  EXPECT_EQ(session->stats().reused_prompt_tokens, 0);
  EXPECT_GT(session->stats().mean_accepted_length(), 1.2);
  EXPECT_EQ(draft->counts->damage, 0);
}

TEST(HeadDrafter, GuessesWhatItsLawsHaveAndNothingElse) {
  const auto draft = fake_draft();
  for (const Mode mode : kModes) {
    const auto session = session_of(std::make_shared<FakeModel>(kTarget), draft, "head");
    GenerateOptions options = answer_options(mode, 150);
    for (const Verifier verifier : {Verifier::kTargetDraw, Verifier::kRejection}) {
      options.verifier = verifier;
      options.sampling = {.temperature = 0.8f, .top_k = 12, .repetition_penalty = 1.1f};
      ASSERT_TRUE(session->start(Text{3, 10, 17, 24}, options).ok());
      while (session->stop_reason() == StopReason::kNone) {
        ASSERT_TRUE(session->step().ok());
        for (const int32_t token : session->last_tree().tokens()) {
          ASSERT_NE(token % draft->options.left_out, 3);
        }
      }
      EXPECT_GT(session->stats().accepted_tokens, 10) << mode_name(mode);
    }
  }
}

// Keeps everything, and what it was told.
class Listening final : public Pruning {
 public:
  std::string_view name() const override { return "listening"; }
  int select(const DraftTree&, int, const Candidates& candidates,
             std::span<int> kept) const override {
    uncertainties.push_back(candidates.uncertainty);
    std::iota(kept.begin(), kept.begin() + candidates.size(), 0);
    return candidates.size();
  }
  mutable std::vector<std::optional<float>> uncertainties;
};

TEST(HeadDrafter, TellsThePruningWhatTheUncertaintyNetworkSays) {
  const Text text = {4, 8, 15, 16, 23, 42};
  const auto drafter =
      make_drafter("head", {.draft = fake_draft(), .model_options = cheap_passes()}).value();
  std::vector<float> states;
  uint64_t row = FakeModel::kNoRow;
  for (size_t i = 1; i < text.size(); ++i) {
    for (const int layer : drafter->traits().hidden_layers) {
      states.push_back(FakeModel::hidden_state(row, layer));
    }
    row = FakeModel::of_row(row, text[i]);
  }
  const Listening pruning;
  const CostCurve cost =
      CostCurve::measured(std::array<int, 2>{1, 64}, std::array<double, 2>{1.0, 1.2});
  const DraftRequest request{.max_nodes = 8, .max_depth = 4, .cost = &cost, .pruning = &pruning};
  for (const bool drawn : {false, true}) {
    pruning.uncertainties.clear();
    ASSERT_TRUE(drafter->start(text, 40).ok());
    ASSERT_TRUE(drafter->read_prompt(0, states).ok());
    EXPECT_EQ(drafter->hidden_states_taken(), 5);
    DraftTree tree;
    Proposals proposals;
    if (drawn) {
      DraftRequest sampled = request;
      sampled.sampling.temperature = 1.f;
      CounterChance chance(3, RandomStream::kDraft, 1);
      ASSERT_TRUE(drafter->propose_sampled(sampled, chance, tree, proposals).ok());
    } else {
      ASSERT_TRUE(drafter->propose(request, tree).ok());
    }
    EXPECT_GT(tree.size(), 0);
    ASSERT_GT(pruning.uncertainties.size(), 1u);
    // The first is of the text's end; the others of nodes, each its own.
    EXPECT_EQ(pruning.uncertainties.front(), static_cast<float>(row % 100) / 99.f);
    for (const std::optional<float>& told : pruning.uncertainties) {
      EXPECT_TRUE(told.has_value());
    }
  }
}

TEST(HeadDrafter, ATextOfOneTokenIsNotDraftedForAndTheNextOnesAre) {
  const auto draft = fake_draft();
  const auto session = session_of(std::make_shared<FakeModel>(kTarget), draft, "head");
  ASSERT_TRUE(session->start(Text{9}, answer_options(Mode::kChain, 40)).ok());
  ASSERT_TRUE(session->step().ok());
  EXPECT_EQ(session->last_tree().size(), 0);
  ASSERT_TRUE(session->step().ok());
  EXPECT_EQ(session->last_tree().size(), 4);
  EXPECT_EQ(draft->counts->damage, 0);
}

TEST(HeadDrafter, TwoSessionsOverOneTargetSeeTheirOwnHiddenStates) {
  const auto target = std::make_shared<FakeModel>(kTarget);
  const auto draft = fake_draft();
  const auto one = session_of(target, draft, "head");
  const auto other = session_of(target, draft, "cascade");
  const std::vector<int> third = {2};
  ASSERT_TRUE(one->start(Text{1, 2, 3}, answer_options(Mode::kDynamic, 60)).ok());
  ASSERT_TRUE(other->start(Text{4, 2, 3, 4}, answer_options(Mode::kFixed, 60)).ok());
  while (one->stop_reason() == StopReason::kNone || other->stop_reason() == StopReason::kNone) {
    ASSERT_TRUE(one->step().ok());
    ASSERT_TRUE(target->keep_hidden_states(third).ok());  // someone else's wish
    ASSERT_TRUE(other->step().ok());
  }
  EXPECT_EQ(draft->counts->damage, 0);
  EXPECT_GT(draft->counts->nodes, 20);
}

TEST(HeadDrafter, ATargetThatShowsNoHiddenStatesIsRefused) {
  class Blind final : public Model {
   public:
    const ModelSpec& spec() const override { return model_.spec(); }
    std::string_view host() const override { return "blind"; }
    int max_rows() const override { return 8; }
    Status forward(const RowBatch&, KvStore&, std::span<float>) override { return Status::okay(); }
    FakeModel model_{kTarget};
  };
  SessionOptions options;
  options.drafter = make_drafter("head", {.draft = fake_draft()}).value();
  const auto session = Session::create(std::make_shared<Blind>(), std::move(options));
  EXPECT_EQ(session.status().code(), Code::kUnsupported);
  EXPECT_NE(session.status().message().find("the drafter head needs"), std::string::npos);
  EXPECT_NE(session.status().message().find("blind"), std::string::npos);
}

// Real arithmetic, random weights.
struct Real {
  std::shared_ptr<const Bundle> bundle;
  std::shared_ptr<Model> target;
  std::shared_ptr<const TrainedDraft> draft;
};

Real real(const std::string& family, DraftKind kind) {
  Real made;
  const std::string folder = write_test_bundle(test_bundle_options(family)).value();
  const std::string draft =
      write_test_draft(folder, {.kind = kind, .head_of_target = true}).value();
  made.bundle = std::make_shared<const Bundle>(Bundle::open(folder).value());
  made.target = open_native_model(made.bundle, {.threads = 1, .max_rows = 32}).value();
  auto opened = open_trained_draft(draft, made.bundle, {}, {.team = made.target->team()});
  EXPECT_TRUE(opened.ok()) << opened.status().message();
  made.draft = std::move(opened).value();
  return made;
}

TEST(TrainedDraft, ARandomOneChangesNoTextOfAnyModeOrTemperature) {
  for (const std::string family : {"llama", "qwen2", "gemma3"}) {
    for (const DraftKind kind : {DraftKind::kHead, DraftKind::kParallelHeads}) {
      const Real parts = real(family, kind);
      int64_t drafted = 0;
      for (const float temperature : {0.f, 0.9f}) {
        const auto plain = session_of(parts.target, parts.draft, "cascade", 120);
        const Text expected =
            answer(*plain, {5, 6, 7, 8, 5, 6}, answer_options(Mode::kPlain, 30, temperature));
        for (const std::string_view drafter :
             {parts.draft->drafter(), std::string_view("cascade")}) {
          const auto session = session_of(parts.target, parts.draft, drafter, 120);
          for (const Mode mode : kModes) {
            EXPECT_EQ(answer(*session, {5, 6, 7, 8, 5, 6}, answer_options(mode, 30, temperature)),
                      expected)
                << family << ' ' << drafter << ' ' << mode_name(mode) << ' ' << temperature;
            drafted += session->stats().drafted_tokens;
          }
        }
      }
      EXPECT_GT(drafted, 100) << family;
    }
  }
}

TEST(TrainedDraft, StepsAllocateNothingOnceWarm) {
  if (!counts_allocations()) GTEST_SKIP() << "a sanitizer brings its own allocator";
  for (const DraftKind kind : {DraftKind::kHead, DraftKind::kParallelHeads}) {
    const Real parts = real("llama", kind);
    for (const std::string_view drafter : {parts.draft->drafter(), std::string_view("cascade")}) {
      for (const Verifier verifier : {Verifier::kTargetDraw, Verifier::kTraversal}) {
        const auto session = session_of(parts.target, parts.draft, drafter, 120);
        GenerateOptions options = answer_options(Mode::kDynamic, 60, 0.9f);
        options.verifier = verifier;
        options.sampling.repetition_penalty = 1.1f;
        ASSERT_TRUE(session->start(Text{1, 2, 3, 1, 2, 3}, options).ok());
        for (int i = 0; i < 3; ++i) ASSERT_TRUE(session->step().ok());
        const uint64_t before = allocations();
        while (session->stop_reason() == StopReason::kNone) {
          if (!session->step().ok()) break;
        }
        EXPECT_EQ(allocations() - before, 0u) << drafter << ' ' << verifier_name(verifier);
        EXPECT_EQ(session->stop_reason(), StopReason::kLength);
      }
    }
  }
}

}  // namespace
}  // namespace sapwood
