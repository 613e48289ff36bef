// What a session does with requests it cannot serve, with passes that fail, and when it is
// cancelled.
#include <gtest/gtest.h>

#include <memory>
#include <vector>

#include "session_fixture.h"

namespace sapwood {
namespace {

TEST(Session, BadRequestsAreRefusedInOneLineAndChangeNothing) {
  SessionFixture fixture({.vocabulary = 30}, 20);
  GenerateOptions options;
  options.max_new_tokens = 4;
  const Text prompt = {1, 2, 3};
  const Text answer = fixture.answer(prompt, options);
  const auto refusal = [&](const Text& bad, const GenerateOptions& bad_options) {
    const Status status = fixture.session->start(bad, bad_options);
    EXPECT_EQ(status.code(), Code::kInvalidArgument);
    EXPECT_EQ(status.message().find('\n'), std::string::npos);
    return status.message();
  };
  EXPECT_NE(refusal({}, options).find("empty"), std::string::npos);
  EXPECT_NE(refusal(Text(21, 1), options).find("21 tokens and the context holds 20"),
            std::string::npos);
  EXPECT_NE(refusal({1, 30}, options).find("token 1 of the prompt is 30"), std::string::npos);
  EXPECT_NE(refusal({-1}, options).find("-1"), std::string::npos);
  GenerateOptions bad = options;
  bad.max_new_tokens = -1;
  EXPECT_NE(refusal(prompt, bad).find("max-new-tokens"), std::string::npos);
  bad = options;
  bad.sampling.top_p = 2;
  EXPECT_NE(refusal(prompt, bad).find("top-p"), std::string::npos);
  bad = options;
  bad.chain_length = -1;
  refusal(prompt, bad);
  EXPECT_EQ(fixture.session->stats().emitted_tokens, 4);
  EXPECT_EQ(fixture.answer(prompt, options), answer);
  EXPECT_EQ(fixture.session->stats().reused_prompt_tokens, 2);
}

TEST(Session, StepsBeforeAPromptAndImpossibleSessionsAreRefused) {
  SessionFixture fixture;
  EXPECT_EQ(fixture.session->step().status().code(), Code::kInvalidArgument);
  EXPECT_FALSE(fixture.session->finish_at(0).ok());
  EXPECT_FALSE(Session::create(nullptr, {}).ok());
  const auto model = std::make_shared<FakeModel>(FakeModel::Options{.context_length = 100});
  SessionOptions options;
  options.context_length = 101;
  EXPECT_NE(Session::create(model, std::move(options)).status().message().find("1 to 100"),
            std::string::npos);
  SessionOptions sampled;
  sampled.context_length = 50;
  auto oracle = std::make_unique<Oracle>(Text(), false);
  oracle->traits_.deterministic = false;
  sampled.drafter = std::move(oracle);
  EXPECT_EQ(Session::create(model, std::move(sampled)).status().code(), Code::kUnsupported);
}

TEST(Session, AFailedPassLosesNoSlotAndTheNextPromptGoesOn) {
  for (int failing = 0; failing < 12; ++failing) {
    SessionFixture fixture({.vocabulary = 8, .max_rows = 8, .habit = 5.f});
    GenerateOptions options;
    options.max_new_tokens = 20;
    const Text prompt(30, 3);
    fixture.model->fail_pass = failing;
    Status status = fixture.session->start(prompt, options);
    while (status.ok()) {
      const auto tokens = fixture.session->step();
      status = tokens.status();
      if (tokens.ok() && tokens.value().empty()) break;
    }
    if (!status.ok()) {
      EXPECT_EQ(status.code(), Code::kInternal);
      EXPECT_EQ(fixture.session->step().status().code(), Code::kInvalidArgument);
    }
    fixture.model->fail_pass = -1;
    EXPECT_EQ(fixture.answer(prompt, options), plain_answer(*fixture.model, prompt, options, 512));
    EXPECT_EQ(fixture.model->damaged_slots, 0);
  }
}

TEST(Session, CancellingEndsAStepAndAPromptBeingRead) {
  SessionFixture fixture({.vocabulary = 8, .max_rows = 4});
  GenerateOptions options;
  options.max_new_tokens = 20;
  ASSERT_TRUE(fixture.session->start(Text{1, 2, 3}, options).ok());
  ASSERT_FALSE(fixture.session->step().value().empty());
  fixture.session->cancel();
  EXPECT_TRUE(fixture.session->step().value().empty());
  EXPECT_EQ(fixture.session->stop_reason(), StopReason::kCancelled);

  int passes = 0;
  fixture.model->before_pass = [&] {
    if (++passes == 2) fixture.session->cancel();
  };
  const Text prompt(40, 5);
  EXPECT_EQ(fixture.session->start(prompt, options).code(), Code::kCancelled);
  EXPECT_EQ(passes, 2);
  EXPECT_EQ(fixture.session->stop_reason(), StopReason::kCancelled);
  EXPECT_TRUE(fixture.session->step().value().empty());
  fixture.model->before_pass = nullptr;
  EXPECT_EQ(fixture.answer(prompt, options), plain_answer(*fixture.model, prompt, options, 512));
  EXPECT_EQ(fixture.session->stats().reused_prompt_tokens, 8);  // the two chunks that were read
}

TEST(Session, ADrafterThatBreaksItsLimitsIsNamedAndNotUsed) {
  class Greedy final : public Drafter {
   public:
    const DrafterTraits& traits() const override { return traits_; }
    Status start(std::span<const int32_t>, int) override { return Status::okay(); }
    void follow(std::span<const int32_t>) override {}
    Status propose(const DraftRequest&, DraftTree& tree) override {
      for (int i = 0; i < 100; ++i) tree.add(i - 1, 1, -1, -1, 1.f);
      return Status::okay();
    }
    DrafterTraits traits_{.name = "greedy-grower"};
  };
  SessionOptions options;
  options.context_length = 64;
  options.drafter = std::make_unique<Greedy>();
  auto session =
      Session::create(std::make_shared<FakeModel>(FakeModel::Options{}), std::move(options));
  ASSERT_TRUE(session.ok());
  ASSERT_TRUE(session.value()->start(Text{1, 2}, {}).ok());
  EXPECT_EQ(session.value()->step().value().size(), 1u);
  EXPECT_NE(session.value()->stats().watchdog.find("greedy-grower"), std::string::npos);
}

}  // namespace
}  // namespace sapwood
