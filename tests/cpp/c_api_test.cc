#include <gtest/gtest.h>

#include <algorithm>
#include <string>
#include <vector>

#include "c_api_example.h"
#include "make_test_bundle.h"
#include "sapwood/sapwood.h"

namespace sapwood {
namespace {

using Text = std::vector<int32_t>;
const Text kPrompt = {1, 2, 3, 4, 1, 2, 3};

const std::string& bundle() {
  static const std::string path = write_test_bundle(test_bundle_options("llama")).value();
  return path;
}

struct Opened {
  Opened() {
    EXPECT_EQ(sapwood_engine_open(bundle().c_str(), nullptr, &engine), SAPWOOD_OK)
        << sapwood_last_error();
    EXPECT_EQ(sapwood_session_create(engine, nullptr, &session), SAPWOOD_OK)
        << sapwood_last_error();
  }
  ~Opened() {
    sapwood_session_close(session);
    sapwood_engine_close(engine);
  }
  sapwood_engine* engine = nullptr;
  sapwood_session* session = nullptr;
};

TEST(CApi, TheExampleInCGivesTheSameTextInEveryMode) {
  Text first;
  for (const sapwood_mode mode : {SAPWOOD_PLAIN, SAPWOOD_CHAIN, SAPWOOD_FIXED, SAPWOOD_DYNAMIC}) {
    Text answer(40);
    sapwood_stats stats;
    ASSERT_EQ(c_api_example(bundle().c_str(), "native", mode, kPrompt.data(), kPrompt.size(),
                            answer.data(), answer.size(), &stats),
              40);
    if (first.empty()) first = answer;
    EXPECT_EQ(answer, first) << sapwood_mode_name(mode);
    EXPECT_EQ(stats.mode, mode);
    EXPECT_EQ(stats.emitted_tokens, 40);
    EXPECT_EQ(stats.prompt_tokens, 7);
    EXPECT_GT(stats.tokens_per_second, 0);
    EXPECT_DOUBLE_EQ(stats.mean_accepted_length, 40.0 / static_cast<double>(stats.steps));
  }
}

TEST(CApi, ErrorsAreCodesAndOneLine) {
  sapwood_engine* engine = reinterpret_cast<sapwood_engine*>(1);
  EXPECT_NE(sapwood_engine_open("no/such/bundle", nullptr, &engine), SAPWOOD_OK);
  EXPECT_EQ(engine, nullptr);
  const std::string message = sapwood_last_error();
  EXPECT_NE(message.find("no/such/bundle"), std::string::npos);
  EXPECT_EQ(message.find('\n'), std::string::npos);

  sapwood_engine_options options;
  sapwood_engine_options_init(&options);
  options.host = "gpu";
  EXPECT_EQ(sapwood_engine_open(bundle().c_str(), &options, &engine), SAPWOOD_INVALID_ARGUMENT);
  EXPECT_NE(std::string(sapwood_last_error()).find("gpu"), std::string::npos);

  Opened opened;
  EXPECT_EQ(sapwood_session_start(opened.session, nullptr, 0, nullptr), SAPWOOD_INVALID_ARGUMENT);
  EXPECT_NE(std::string(sapwood_last_error()).find("empty"), std::string::npos);
  const int32_t* tokens = nullptr;
  size_t count = 0;
  EXPECT_EQ(sapwood_session_step(opened.session, &tokens, &count), SAPWOOD_INVALID_ARGUMENT);
  EXPECT_EQ(sapwood_session_step(nullptr, &tokens, &count), SAPWOOD_INVALID_ARGUMENT);
  EXPECT_EQ(sapwood_session_step(opened.session, nullptr, &count), SAPWOOD_INVALID_ARGUMENT);
  EXPECT_EQ(sapwood_session_finish_at(opened.session, 1), SAPWOOD_INVALID_ARGUMENT);
  sapwood_session_options session_options;
  sapwood_session_options_init(&session_options);
  session_options.context_length = 1 << 30;
  sapwood_session* session = nullptr;
  EXPECT_EQ(sapwood_session_create(opened.engine, &session_options, &session),
            SAPWOOD_INVALID_ARGUMENT);
  EXPECT_EQ(session, nullptr);
}

TEST(CApi, AnOptionsStructureThatWasNotInitialisedIsRefused) {
  Opened opened;
  sapwood_generate_options options = {};
  EXPECT_EQ(sapwood_session_start(opened.session, kPrompt.data(), kPrompt.size(), &options),
            SAPWOOD_INVALID_ARGUMENT);
  EXPECT_NE(std::string(sapwood_last_error()).find("_init"), std::string::npos);
  sapwood_stats stats = {};
  EXPECT_EQ(sapwood_session_stats(opened.session, &stats), SAPWOOD_INVALID_ARGUMENT);
}

TEST(CApi, ABadModeIsRefused) {
  Opened opened;
  sapwood_generate_options options;
  sapwood_generate_options_init(&options);
  options.mode = 9;
  EXPECT_EQ(sapwood_session_start(opened.session, kPrompt.data(), kPrompt.size(), &options),
            SAPWOOD_INVALID_ARGUMENT);
}

TEST(CApi, AnswersEndAtTheCallersTokensAndCuts) {
  Opened opened;
  sapwood_generate_options options;
  sapwood_generate_options_init(&options);
  options.max_new_tokens = 20;
  options.ignore_eos = 1;
  const auto answer = [&] {
    Text text;
    EXPECT_EQ(sapwood_session_start(opened.session, kPrompt.data(), kPrompt.size(), &options),
              SAPWOOD_OK)
        << sapwood_last_error();
    for (;;) {
      const int32_t* tokens = nullptr;
      size_t count = 0;
      EXPECT_EQ(sapwood_session_step(opened.session, &tokens, &count), SAPWOOD_OK);
      if (count == 0) return text;
      text.insert(text.end(), tokens, tokens + count);
    }
  };
  const Text whole = answer();
  ASSERT_EQ(whole.size(), 20u);
  EXPECT_EQ(sapwood_session_stop_reason(opened.session), SAPWOOD_STOP_LENGTH);
  EXPECT_STREQ(sapwood_stop_reason_name(SAPWOOD_STOP_LENGTH), "length");
  EXPECT_EQ(std::string(sapwood_session_tree_json(opened.session)).substr(0, 9), "{\"nodes\":");

  options.ignore_eos = 0;
  options.eos_tokens = &whole[3];
  options.eos_token_count = 1;
  const Text cut = answer();
  EXPECT_EQ(cut.back(), whole[3]);
  EXPECT_LE(cut.size(), 4u);
  EXPECT_EQ(sapwood_session_stop_reason(opened.session), SAPWOOD_STOP_EOS);
  EXPECT_EQ(sapwood_session_finish_at(opened.session, 0), SAPWOOD_OK);
  EXPECT_EQ(sapwood_session_stop_reason(opened.session), SAPWOOD_STOP_STOPPED);
}

TEST(CApi, TheVersionIsTheProjects) {
  const std::string version = sapwood_version();
  EXPECT_EQ(std::count(version.begin(), version.end(), '.'), 2) << version;
  EXPECT_STREQ(sapwood_mode_name(SAPWOOD_FIXED), "fixed");
  EXPECT_STREQ(sapwood_mode_name(9), "unknown");
  EXPECT_STREQ(sapwood_stop_reason_name(-1), "unknown");
}

}  // namespace
}  // namespace sapwood
