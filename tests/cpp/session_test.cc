#include "engine/session.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <memory>
#include <random>
#include <vector>

#include "draft/ngram_drafter.h"
#include "session_fixture.h"

namespace sapwood {
namespace {

constexpr std::array<Mode, 4> kModes = {Mode::kPlain, Mode::kChain, Mode::kFixed, Mode::kDynamic};

Text random_prompt(std::mt19937& random, int vocabulary, int longest) {
  Text prompt(1 + random() % longest);
  for (int32_t& token : prompt) token = static_cast<int32_t>(random() % vocabulary);
  // Repeat a part, so that there is something to draft from.
  const Text part(prompt.begin(), prompt.begin() + static_cast<long>(random() % prompt.size()));
  if (prompt.size() + part.size() < 200) prompt.insert(prompt.end(), part.begin(), part.end());
  return prompt;
}

TEST(Session, EveryModeGivesThePlainTextOfHundredsOfPrompts) {
  std::mt19937 random(2024);
  std::array<int64_t, 4> accepted{};
  for (int round = 0; round < 250; ++round) {
    const FakeModel::Options model{.vocabulary = 5 + static_cast<int>(random() % 30),
                                   .max_rows = 1 + static_cast<int>(random() % 40),
                                   .habit = 3.f + static_cast<float>(random() % 8)};
    const int context = 40 + static_cast<int>(random() % 300);
    GenerateOptions options;
    options.max_new_tokens = static_cast<int>(random() % 80);
    options.chain_length = 1 + static_cast<int>(random() % 6);
    options.fixed_nodes = 1 + static_cast<int>(random() % 20);
    if (round % 2 == 1) {
      options.sampling = {.temperature = 0.5f + 0.1f * static_cast<float>(random() % 5),
                          .top_k = round % 3 == 0 ? 5 : 0,
                          .top_p = round % 5 == 0 ? 0.9f : 1.f,
                          .min_p = round % 7 == 0 ? 0.05f : 0.f,
                          .seed = random()};
    }
    if (round % 4 == 0) options.sampling.repetition_penalty = 1.2f;
    if (round % 3 == 0) options.eos_token_ids = {1, 3};
    Text prompt = random_prompt(random, model.vocabulary, 60);
    if (static_cast<int>(prompt.size()) > context) prompt.resize(context);

    SessionFixture fixture(model, context, static_cast<int>(random() % 32));
    const Text expected = plain_answer(*fixture.model, prompt, options, context);
    SessionStats plain;
    for (const Mode mode : kModes) {
      options.mode = mode;
      ASSERT_EQ(fixture.answer(prompt, options), expected) << mode_name(mode) << ' ' << round;
      const SessionStats& stats = fixture.session->stats();
      ASSERT_EQ(stats.emitted_tokens, static_cast<int>(expected.size()));
      ASSERT_EQ(stats.prompt_tokens, static_cast<int>(prompt.size()));
      const Text text(fixture.session->tokens().begin(), fixture.session->tokens().end());
      ASSERT_TRUE(std::equal(prompt.begin(), prompt.end(), text.begin()));
      ASSERT_TRUE(std::equal(expected.begin(), expected.end(), text.begin() + prompt.size()));
      // The reason is the same with and without speculation, too.
      const StopReason reason = fixture.session->stop_reason();
      const bool eos =
          !expected.empty() && std::count(options.eos_token_ids.begin(),
                                          options.eos_token_ids.end(), expected.back()) > 0;
      const bool length = static_cast<int>(expected.size()) == options.max_new_tokens;
      ASSERT_EQ(reason, eos      ? StopReason::kEos
                        : length ? StopReason::kLength
                                 : StopReason::kContext);
      accepted[static_cast<int>(mode)] += stats.accepted_tokens;
    }
    ASSERT_EQ(fixture.model->damaged_slots, 0) << round;
    ASSERT_LT(fixture.model->highest_position, context);
  }
  EXPECT_EQ(accepted[0], 0);
  for (int mode = 1; mode < 4; ++mode) EXPECT_GT(accepted[mode], 500) << "nothing was tested";
}

TEST(Session, SpeculationTakesFewerStepsThanTokens) {
  SessionFixture fixture({.vocabulary = 12, .max_rows = 32, .habit = 6.f});
  GenerateOptions options;
  options.max_new_tokens = 200;
  const Text prompt = {1, 2, 3, 4};
  for (const Mode mode : kModes) {
    options.mode = mode;
    ASSERT_EQ(fixture.answer(prompt, options).size(), 200u);
    const SessionStats& stats = fixture.session->stats();
    EXPECT_EQ(stats.steps + stats.accepted_tokens, stats.emitted_tokens);
    EXPECT_EQ(stats.rows_verified, stats.steps + stats.drafted_tokens);
    EXPECT_DOUBLE_EQ(stats.mean_accepted_length(), 200.0 / static_cast<double>(stats.steps));
    EXPECT_GE(stats.peak_kv_slots, 203);
    if (mode == Mode::kPlain) {
      EXPECT_EQ(stats.steps, 200);
      EXPECT_EQ(stats.peak_kv_slots, 203);
    } else {
      EXPECT_LT(stats.steps, 150) << mode_name(mode);
    }
  }
}

TEST(Session, ACacheThatTheHostDoesNotTakeIsRefusedInALineThatSaysWhatToDo) {
  SessionOptions options;
  options.context_length = 64;
  options.kv = KvFormat::kInt8;
  const auto session =
      Session::create(std::make_shared<FakeModel>(FakeModel::Options{}), std::move(options));
  EXPECT_EQ(session.status().code(), Code::kUnsupported);
  EXPECT_NE(session.status().message().find("takes no int8 KV cache; use the host native"),
            std::string::npos)
      << session.status().message();
}

TEST(Session, AcceptedNodesBehindRejectedSiblingsMoveToTheFrontOfTheCache) {
  const Text prompt = {5, 6, 7};
  GenerateOptions options;
  options.max_new_tokens = 100;
  const FakeModel::Options model{.vocabulary = 30, .max_rows = 64};
  const Text expected = plain_answer(FakeModel(model), prompt, options, 400);
  for (const bool wrong_first : {false, true}) {
    auto shared = std::make_shared<FakeModel>(model);
    SessionOptions session_options;
    session_options.context_length = 400;
    session_options.max_tree_nodes = 20;
    session_options.drafter = std::make_unique<Oracle>(expected, wrong_first);
    auto session = Session::create(shared, std::move(session_options));
    ASSERT_TRUE(session.ok());
    ASSERT_TRUE(session.value()->start(prompt, options).ok());
    Text text;
    for (;;) {
      const auto tokens = session.value()->step();
      ASSERT_TRUE(tokens.ok()) << tokens.status().message();
      if (tokens.value().empty()) break;
      text.insert(text.end(), tokens.value().begin(), tokens.value().end());
    }
    EXPECT_EQ(text, expected);
    EXPECT_EQ(shared->damaged_slots, 0);
    EXPECT_EQ(session.value()->stats().steps, wrong_first ? 10 : 5);
  }
}

TEST(Session, AnEndTokenInsideAnAcceptedBlockEndsTheAnswerThere) {
  const Text prompt = {5, 6, 7};
  GenerateOptions options;
  options.max_new_tokens = 60;
  const FakeModel::Options model{.vocabulary = 30, .max_rows = 64};
  const Text unbounded = plain_answer(FakeModel(model), prompt, options, 400);
  for (size_t end = 0; end < 20; ++end) {
    options.eos_token_ids = {unbounded[end]};
    const Text expected = plain_answer(FakeModel(model), prompt, options, 400);
    SessionOptions session_options;
    session_options.context_length = 400;
    session_options.drafter = std::make_unique<Oracle>(unbounded, false);
    auto session = Session::create(std::make_shared<FakeModel>(model), std::move(session_options));
    ASSERT_TRUE(session.ok());
    ASSERT_TRUE(session.value()->start(prompt, options).ok());
    const auto tokens = session.value()->step();
    ASSERT_TRUE(tokens.ok());
    EXPECT_EQ(Text(tokens.value().begin(), tokens.value().end()), expected);
    EXPECT_EQ(session.value()->stop_reason(), StopReason::kEos);
    EXPECT_TRUE(session.value()->step().value().empty());
    EXPECT_EQ(session.value()->stats().emitted_tokens, static_cast<int>(expected.size()));
  }
}

TEST(Session, TheTokenLimitAndTheContextsEndClipTheDraft) {
  const FakeModel::Options model{.vocabulary = 30, .max_rows = 64};
  const Text prompt = {5, 6, 7};
  GenerateOptions options;
  options.max_new_tokens = 100;
  const Text unbounded = plain_answer(FakeModel(model), prompt, options, 400);
  for (const int context : {3, 4, 5, 9, 16, 40}) {
    for (const int limit : {0, 1, 2, 7, 100}) {
      auto shared = std::make_shared<FakeModel>(model);
      SessionOptions session_options;
      session_options.context_length = context;
      session_options.drafter = std::make_unique<Oracle>(unbounded, true);
      auto session = Session::create(shared, std::move(session_options));
      ASSERT_TRUE(session.ok());
      options.max_new_tokens = limit;
      ASSERT_TRUE(session.value()->start(prompt, options).ok());
      Text text;
      for (;;) {
        const auto tokens = session.value()->step();
        ASSERT_TRUE(tokens.ok()) << tokens.status().message();
        if (tokens.value().empty()) break;
        text.insert(text.end(), tokens.value().begin(), tokens.value().end());
        EXPECT_LE(session.value()->last_tree().max_depth(),
                  static_cast<int>(tokens.value().size()));
      }
      const int length = std::min(limit, context - 3);
      EXPECT_EQ(text, Text(unbounded.begin(), unbounded.begin() + length));
      EXPECT_EQ(session.value()->stop_reason(),
                length == limit ? StopReason::kLength : StopReason::kContext);
      EXPECT_LT(shared->highest_position, context);
    }
  }
}

TEST(Session, ASharedPrefixIsNotComputedAgain) {
  std::mt19937 random(31);
  SessionFixture fixture({.vocabulary = 30, .max_rows = 16});
  GenerateOptions options;
  options.max_new_tokens = 20;
  options.mode = Mode::kDynamic;
  const Text first = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10};
  const Text answer = fixture.answer(first, options);
  EXPECT_EQ(fixture.session->stats().reused_prompt_tokens, 0);

  // The conversation goes on: prompt, answer and a new question. The last token of the answer was
  // never computed.
  Text second = first;
  second.insert(second.end(), answer.begin(), answer.end());
  second.insert(second.end(), {11, 12, 13});
  const int64_t rows_before = fixture.model->rows;
  ASSERT_TRUE(fixture.session->start(second, options).ok());
  EXPECT_EQ(fixture.session->stats().reused_prompt_tokens, 29);
  EXPECT_EQ(fixture.model->rows - rows_before, 33 - 29 - 1);
  EXPECT_EQ(fixture.answer(), plain_answer(*fixture.model, second, options, 512));

  // The same prompt again: everything but its last token, which is the first root.
  EXPECT_EQ(fixture.answer(first, options), answer);
  EXPECT_EQ(fixture.session->stats().reused_prompt_tokens, 9);

  // Prompts that part ways anywhere.
  for (int round = 0; round < 40; ++round) {
    Text prompt(second.begin(), second.begin() + static_cast<long>(random() % second.size()));
    for (int i = static_cast<int>(random() % 4); i >= 0; --i) {
      prompt.push_back(static_cast<int32_t>(random() % 30));
    }
    options.mode = kModes[random() % 4];
    ASSERT_EQ(fixture.answer(prompt, options), plain_answer(*fixture.model, prompt, options, 512));
  }
  EXPECT_EQ(fixture.model->damaged_slots, 0);
}

TEST(Session, LongPromptsComeInChunksOfWhatTheModelTakes) {
  std::mt19937 random(8);
  Text prompt(100);
  for (int32_t& token : prompt) token = static_cast<int32_t>(random() % 20);
  GenerateOptions options;
  options.max_new_tokens = 5;
  for (const int max_rows : {1, 2, 7, 33, 99, 100}) {
    SessionFixture fixture({.vocabulary = 20, .max_rows = max_rows});
    ASSERT_TRUE(fixture.session->start(prompt, options).ok());
    EXPECT_EQ(fixture.model->passes, (99 + max_rows - 1) / max_rows);
    EXPECT_EQ(fixture.answer(), plain_answer(*fixture.model, prompt, options, 512));
  }
}

TEST(Session, CuttingTheAnswerInsideABlockIsAsIfItHadStoppedThere) {
  GenerateOptions options;
  options.max_new_tokens = 60;
  options.mode = Mode::kDynamic;
  const Text prompt = {1, 2, 1, 2, 1};
  SessionFixture fixture({.vocabulary = 6, .max_rows = 32, .habit = 6.f});
  const Text whole = fixture.answer(prompt, options);
  for (int cut = 0; cut <= 60; cut += 7) {
    ASSERT_TRUE(fixture.session->start(prompt, options).ok());
    while (fixture.session->stats().emitted_tokens < cut) {
      ASSERT_TRUE(fixture.session->step().ok());
    }
    ASSERT_TRUE(fixture.session->finish_at(cut).ok());
    EXPECT_EQ(fixture.session->stats().emitted_tokens, cut);
    EXPECT_EQ(fixture.session->tokens().size(), prompt.size() + cut);
    EXPECT_EQ(fixture.session->stop_reason(), StopReason::kStopped);
    EXPECT_TRUE(fixture.session->step().value().empty());
    EXPECT_FALSE(fixture.session->finish_at(cut + 1).ok());

    // What is left in the cache is the cut text and serves the next turn.
    Text next(fixture.session->tokens().begin(), fixture.session->tokens().end());
    next.push_back(3);
    ASSERT_EQ(fixture.answer(next, options), plain_answer(*fixture.model, next, options, 512));
    EXPECT_GE(fixture.session->stats().reused_prompt_tokens,
              static_cast<int>(prompt.size()) + cut - 1);
  }
  EXPECT_EQ(fixture.model->damaged_slots, 0);
}

TEST(Mode, NamesGoBothWaysAndOthersAreUnknown) {
  for (const Mode mode : kModes) EXPECT_EQ(parse_mode(mode_name(mode)), mode);
  EXPECT_FALSE(parse_mode("Plain").has_value());
  EXPECT_FALSE(parse_mode("").has_value());
}

}  // namespace
}  // namespace sapwood
