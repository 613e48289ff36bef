// Sessions that begin like earlier ones: only the rest of the prompt is computed, the text and the
// draft are those of a session that computed all of it, and slots that run out harm nobody.
#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "draft/drafters.h"
#include "drafter_parts.h"
#include "engine/session.h"
#include "fake_model.h"
#include "session_answer.h"

namespace sapwood {
namespace {

constexpr std::array<Mode, 4> kModes = {Mode::kPlain, Mode::kChain, Mode::kFixed, Mode::kDynamic};

// A model, and what sessions over it share: the cache, and where the draft's K and V lie.
struct Shared {
  explicit Shared(std::string_view the_drafter, int kv_slots = 0)
      : drafter(the_drafter),
        model(std::make_shared<FakeModel>(
            FakeModel::Options{.vocabulary = 40, .max_rows = 24, .habit = 6.f})),
        parts(parts_of(drafter, *model)) {
    parts.model_options.memory = std::make_shared<DraftMemory>();
    SessionOptions options = these_options();
    options.kv_slots = kv_slots;
    cache = Session::make_cache(*model, options).value();
  }

  SessionOptions these_options() const {
    SessionOptions options;
    options.context_length = 300;
    options.max_tree_nodes = 16;
    options.measured_costs = {{64}, {1, 64}, {1.0, 1.2}};
    options.learn_costs = false;
    return options;
  }
  // alone: with a cache and a memory of its own.
  std::unique_ptr<Session> session(bool alone = false) const {
    SessionOptions options = these_options();
    DrafterParts own = parts;
    if (alone) {
      own.model_options.memory = nullptr;
    } else {
      options.cache = cache;
    }
    options.drafter = make_drafter(drafter, own).value();
    Result<std::unique_ptr<Session>> made = Session::create(model, std::move(options));
    EXPECT_TRUE(made.ok()) << made.status().message();
    return std::move(made).value();
  }

  std::string_view drafter;
  std::shared_ptr<FakeModel> model;
  DrafterParts parts;
  std::shared_ptr<PrefixCache> cache;
};

Text prompt_of(size_t size, unsigned seed) {
  std::mt19937 random(seed);
  Text prompt(size);
  for (int32_t& token : prompt) token = static_cast<int32_t>(random() % 40);
  return prompt;
}

GenerateOptions options_of(Mode mode, float temperature,
                           Verifier verifier = Verifier::kTargetDraw) {
  GenerateOptions options;
  options.mode = mode;
  options.max_new_tokens = 40;
  options.verifier = verifier;
  options.sampling = {.temperature = temperature, .seed = 5};
  options.sampling.repetition_penalty = temperature > 0 ? 1.1f : 1.f;
  return options;
}

TEST(SessionPrefix, EveryDrafterSaysAndDraftsTheSameAfterASharedPrefixAsWithoutOne) {
  for (const std::string_view drafter : kDrafterNames) {
    for (const Mode mode : kModes) {
      for (const float temperature : {0.f, 0.8f}) {
        for (const Verifier verifier : {Verifier::kTargetDraw, Verifier::kTraversal}) {
          if (verifier != Verifier::kTargetDraw && (temperature == 0 || mode == Mode::kPlain)) {
            continue;
          }
          const Shared shared(drafter);
          const GenerateOptions options = options_of(mode, temperature, verifier);
          Text first = prompt_of(120, 1);
          answer(*shared.session(), first, options);
          // Another one, whose prompt parts ways after a hundred tokens.
          Text second(first.begin(), first.begin() + 100);
          second.insert(second.end(), {7, 8, 9, 7, 8});
          const std::unique_ptr<Session> alone = shared.session(true);
          const Text expected = answer(*alone, second, options);
          EXPECT_EQ(alone->stats().reused_prompt_tokens, 0);
          const std::unique_ptr<Session> session = shared.session();
          const int64_t before = shared.model->rows;
          ASSERT_EQ(answer(*session, second, options), expected)
              << drafter << ' ' << mode_name(mode) << ' ' << temperature;
          // A draft that reads hidden states lacks those of the last token before the fork, whose
          // row knows the token after it.
          EXPECT_GE(session->stats().reused_prompt_tokens, 99) << drafter << ' ' << mode_name(mode);
          EXPECT_LE(shared.model->rows - before, 5 + session->stats().rows_verified);
          // Not one guess is worse for it.
          EXPECT_EQ(session->stats().steps, alone->stats().steps) << drafter;
          EXPECT_EQ(session->stats().accepted_tokens, alone->stats().accepted_tokens) << drafter;
          EXPECT_EQ(session->stats().drafted_tokens, alone->stats().drafted_tokens) << drafter;
          EXPECT_EQ(shared.model->damaged_slots, 0);
          if (const auto* fake = dynamic_cast<const FakeDraft*>(shared.parts.draft.get())) {
            EXPECT_EQ(fake->counts->damage, 0);
          }
        }
      }
    }
  }
}

TEST(SessionPrefix, ConversationsOfOneSessionTakeTurnsWithoutReadingAnythingTwice) {
  for (const std::string_view drafter : {"mix", "cascade", "head"}) {
    const Shared shared(drafter);
    const std::unique_ptr<Session> session = shared.session();
    const std::unique_ptr<Session> alone = shared.session(true);
    const GenerateOptions options = options_of(Mode::kDynamic, 0);
    std::array<Text, 3> chats = {prompt_of(30, 1), prompt_of(40, 2), prompt_of(20, 3)};
    std::array<size_t, 3> known{};
    for (int turn = 0; turn < 4; ++turn) {
      for (size_t c = 0; c < chats.size(); ++c) {
        GenerateOptions this_turn = options;
        this_turn.max_new_tokens = 10;
        const Text said = answer(*session, chats[c], this_turn);
        ASSERT_EQ(said, answer(*alone, chats[c], this_turn)) << drafter;
        // A draft that reads hidden states has no row for the last token, and so knows one less.
        EXPECT_GE(session->stats().reused_prompt_tokens + (drafter == "head" ? 2 : 0),
                  static_cast<int>(known[c]))
            << drafter << ' ' << turn;
        chats[c].insert(chats[c].end(), said.begin(), said.end());
        known[c] = chats[c].size() - 1;
        chats[c].push_back(static_cast<int32_t>(turn));
      }
    }
    EXPECT_EQ(shared.model->damaged_slots, 0);
  }
}

TEST(SessionPrefix, SessionsThatLiveAtOnceShareThePromptAndKeepTheirOwnAnswers) {
  for (const std::string_view drafter : {"mix", "head", "cascade"}) {
    const Shared shared(drafter, 900);
    const Text prompt = prompt_of(150, 9);
    std::vector<std::unique_ptr<Session>> sessions;
    std::vector<Text> expected, said(4);
    for (int i = 0; i < 4; ++i) {
      GenerateOptions options = options_of(kModes[static_cast<size_t>(i)], 0.9f);
      options.sampling.seed = static_cast<uint64_t>(i);
      expected.push_back(answer(*shared.session(true), prompt, options));
      sessions.push_back(shared.session());
      ASSERT_TRUE(sessions.back()->start(prompt, options).ok());
      if (i > 1) {
        // A draft shares what it has read in stretches.
        EXPECT_GE(sessions.back()->stats().reused_prompt_tokens, 70) << drafter;
      }
    }
    EXPECT_LT(shared.cache->taken(), 300);
    for (bool going = true; going;) {
      going = false;
      for (size_t i = 0; i < sessions.size(); ++i) {
        const auto tokens = sessions[i]->step();
        ASSERT_TRUE(tokens.ok()) << tokens.status().message();
        said[i].insert(said[i].end(), tokens.value().begin(), tokens.value().end());
        going = going || !tokens.value().empty();
      }
    }
    EXPECT_EQ(said, expected) << drafter;
    EXPECT_EQ(shared.model->damaged_slots, 0);
    sessions.clear();
    EXPECT_EQ(shared.cache->taken(), shared.cache->stored());
    shared.cache->forget();
    EXPECT_EQ(shared.cache->taken(), 0);
  }
}

TEST(SessionPrefix, SlotsThatRunShortCostOldPrefixesAndNeverALivingText) {
  const Shared shared("head");  // room for one context and a tree
  const std::unique_ptr<Session> session = shared.session();
  const std::unique_ptr<Session> alone = shared.session(true);
  std::mt19937 random(4);
  int reused = 0;
  for (int round = 0; round < 25; ++round) {
    const GenerateOptions options = options_of(kModes[random() % 4], round % 2 == 0 ? 0.f : 0.7f);
    const Text prompt = prompt_of(40 + random() % 200, static_cast<unsigned>(round % 3));
    ASSERT_EQ(answer(*session, prompt, options), answer(*alone, prompt, options)) << round;
    reused += session->stats().reused_prompt_tokens;
    ASSERT_LE(shared.cache->taken(), shared.cache->slots());
  }
  EXPECT_GT(reused, 100);
  EXPECT_EQ(shared.model->damaged_slots, 0);
}

TEST(SessionPrefix, ASessionThatFindsNoSlotSaysWhoHasThemAndGoesOnWhenTheyAreFree) {
  const Shared shared("mix");  // 320 slots
  std::unique_ptr<Session> large = shared.session();
  const GenerateOptions options = options_of(Mode::kDynamic, 0);
  const Text long_prompt = prompt_of(250, 1), other = prompt_of(200, 2);
  ASSERT_TRUE(large->start(long_prompt, options).ok());
  const std::unique_ptr<Session> small = shared.session();
  const Status refused = small->start(other, options);
  EXPECT_EQ(refused.code(), Code::kExhausted);
  EXPECT_NE(refused.message().find("320"), std::string::npos) << refused.message();
  EXPECT_NE(refused.message().find("other sessions"), std::string::npos);
  EXPECT_EQ(rest_of_answer(*large).size(), 40u);  // is none the worse for it
  large.reset();
  EXPECT_EQ(answer(*small, other, options), answer(*shared.session(true), other, options));
  EXPECT_EQ(shared.model->damaged_slots, 0);
}

TEST(SessionPrefix, AnAllocatorThatRunsOutAtAnyStepCostsNoSlotAndNoToken) {
  for (const std::string_view drafter : {"mix", "head", "model"}) {
    for (int failing = 0; failing < 24; ++failing) {
      const Shared shared(drafter);
      const GenerateOptions options = options_of(Mode::kDynamic, 0.8f);
      const Text prompt = prompt_of(90, 1);
      const Text expected = answer(*shared.session(true), prompt, options);
      const std::unique_ptr<Session> session = shared.session();
      // Before pass number `failing` somebody takes every slot that is left, of target or draft.
      int passes = 0;
      std::vector<int32_t> target_slots, draft_slots;
      shared.model->before_pass = [&] {
        if (passes++ != failing) return;
        target_slots.resize(static_cast<size_t>(shared.cache->make_room(1 << 20)));
        ASSERT_TRUE(shared.cache->allocate(target_slots));
        if (PrefixCache* draft = shared.parts.model_options.memory->cache.get()) {
          draft_slots.resize(static_cast<size_t>(draft->make_room(1 << 20)));
          ASSERT_TRUE(draft->allocate(draft_slots));
        }
      };
      Text said;
      Status status = session->start(prompt, options);
      while (status.ok()) {
        const auto tokens = session->step();
        status = tokens.status();
        if (!tokens.ok() || tokens.value().empty()) break;
        said.insert(said.end(), tokens.value().begin(), tokens.value().end());
      }
      ASSERT_EQ(status.ok() ? Code::kExhausted : status.code(), Code::kExhausted)
          << status.message();
      ASSERT_TRUE(std::equal(said.begin(), said.end(), expected.begin()));
      shared.model->before_pass = nullptr;
      ASSERT_TRUE(shared.cache->is_whole());
      ASSERT_TRUE(shared.cache->free(target_slots).ok());
      if (PrefixCache* draft = shared.parts.model_options.memory->cache.get()) {
        ASSERT_TRUE(draft->free(draft_slots).ok());
        ASSERT_TRUE(draft->is_whole());
      }
      ASSERT_EQ(answer(*session, prompt, options), expected) << drafter << ' ' << failing;
      ASSERT_EQ(shared.model->damaged_slots, 0);
    }
  }
}

TEST(SessionPrefix, NothingOfEarlierTextsIsKeptWhereThatIsAskedFor) {
  const Shared shared("mix");
  SessionOptions options = shared.these_options();
  options.share_prefixes = false;
  const auto session = Session::create(shared.model, std::move(options)).value();
  const GenerateOptions plain = options_of(Mode::kPlain, 0);
  answer(*session, prompt_of(50, 1), plain);
  answer(*session, prompt_of(60, 2), plain);
  answer(*session, prompt_of(50, 1), plain);
  EXPECT_EQ(session->stats().reused_prompt_tokens, 0);
  answer(*session, prompt_of(50, 1), plain);
  EXPECT_EQ(session->stats().reused_prompt_tokens, 49);  // but what it holds itself
  EXPECT_LE(session->cache()->taken(), 50 + 40 + 16);
}

TEST(SessionPrefix, CachesThatDoNotFitAreRefusedInALineThatSaysWhatToDo) {
  const Shared shared("mix");
  SessionOptions few = shared.these_options();
  few.kv_slots = 100;
  EXPECT_NE(Session::create(shared.model, std::move(few)).status().message().find("at least 316"),
            std::string::npos);
  SessionOptions longer = shared.these_options();
  longer.context_length = 600;
  longer.cache = shared.cache;
  EXPECT_NE(
      Session::create(shared.model, std::move(longer)).status().message().find("320 KV slots"),
      std::string::npos);
  SessionOptions other = shared.these_options();
  other.cache = std::make_shared<PrefixCache>(KvStore::create(1, 1, 16, 400).value());
  EXPECT_NE(
      Session::create(shared.model, std::move(other)).status().message().find("another model"),
      std::string::npos);
}

}  // namespace
}  // namespace sapwood
