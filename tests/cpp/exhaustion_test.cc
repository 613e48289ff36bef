// An allocator that runs out at each step in turn: whatever cannot be had, the session says so, or
// never was, and its next answer is right.
#include <gtest/gtest.h>

#include <array>
#include <string>
#include <vector>

#include "make_test_bundle.h"
#include "measure/allocation_counter.h"
#include "sapwood/sapwood.h"

namespace sapwood {
namespace {

using Text = std::vector<int32_t>;

// SAPWOOD_OK with the whole answer, for which `text` has room, or what went wrong.
sapwood_code answer(sapwood_session* session, Text& text) {
  static constexpr std::array<int32_t, 8> prompt = {5, 6, 7, 5, 6, 7, 5, 6};
  text.clear();
  sapwood_generate_options options;
  sapwood_generate_options_init(&options, sizeof(options));
  options.max_new_tokens = 24;
  options.ignore_eos = 1;
  sapwood_code code = sapwood_session_start(session, prompt.data(), prompt.size(), &options);
  while (code == SAPWOOD_OK) {
    const int32_t* tokens;
    size_t count;
    code = sapwood_session_step(session, &tokens, &count);
    if (count == 0) break;
    text.insert(text.end(), tokens, tokens + count);
  }
  return code;
}

class Exhaustion : public ::testing::Test {
 protected:
  void SetUp() override {
    if (!counts_allocations()) GTEST_SKIP() << "a sanitizer brings its own allocator";
    const std::string folder = write_test_bundle(test_bundle_options("llama")).value();
    sapwood_engine_options options;
    sapwood_engine_options_init(&options, sizeof(options));
    options.threads = 1;
    ASSERT_EQ(sapwood_engine_open(folder.c_str(), &options, &engine_), SAPWOOD_OK);
    sapwood_session* session = open();
    ASSERT_NE(session, nullptr);
    ASSERT_EQ(answer(session, expected_), SAPWOOD_OK);
    sapwood_session_close(session);
  }
  void TearDown() override { sapwood_engine_close(engine_); }

  sapwood_session* open() {
    sapwood_session_options options;
    sapwood_session_options_init(&options, sizeof(options));
    options.context_length = 100;
    sapwood_session* session = nullptr;
    code_ = sapwood_session_create(engine_, &options, &session);
    return session;
  }

  sapwood_engine* engine_ = nullptr;
  sapwood_code code_ = SAPWOOD_OK;
  Text expected_;
};

TEST_F(Exhaustion, ASessionThatCannotBeMadeIsNotAndTheNextOneIs) {
  int failures = 0;
  for (int after = 0;; ++after) {
    fail_allocation(after);
    sapwood_session* session = open();
    const bool failed = allocation_failed();
    fail_allocation(-1);
    if (!failed) {
      ASSERT_NE(session, nullptr);
      sapwood_session_close(session);
      break;
    }
    ++failures;
    EXPECT_EQ(code_, SAPWOOD_EXHAUSTED) << after;
    EXPECT_EQ(session, nullptr);
  }
  EXPECT_GT(failures, 10);
  sapwood_session* session = open();
  Text text;
  EXPECT_EQ(answer(session, text), SAPWOOD_OK);
  EXPECT_EQ(text, expected_);
  sapwood_session_close(session);
}

TEST_F(Exhaustion, AnAnswerThatCannotBeginEndsWithALineAndTheNextOneIsRight) {
  int failures = 0;
  bool failed = true;
  for (int after = 0; failed; ++after) {
    sapwood_session* session = open();
    ASSERT_NE(session, nullptr);
    Text text;
    text.reserve(64);
    fail_allocation(after);
    const sapwood_code code = answer(session, text);
    failed = allocation_failed();
    fail_allocation(-1);
    failures += failed ? 1 : 0;
    // What fails in a draft costs the draft alone.
    if (code == SAPWOOD_OK) {
      EXPECT_EQ(text, expected_) << after;
    } else {
      EXPECT_EQ(code, SAPWOOD_EXHAUSTED) << after;
    }
    EXPECT_EQ(answer(session, text), SAPWOOD_OK) << after << ' ' << sapwood_last_error();
    EXPECT_EQ(text, expected_) << after;
    sapwood_session_close(session);
  }
  EXPECT_GT(failures, 3);
}

}  // namespace
}  // namespace sapwood
