#include <gtest/gtest.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include "base/sha256.h"
#include "c_api_example.h"
#include "c_api_opened.h"
#include "draft/ngram_table.h"
#include "kernels/kernels.h"
#include "make_test_bundle.h"
#include "make_test_draft.h"
#include "model/bundle.h"
#include "sapwood/sapwood.h"
#include "temporary_folder.h"

namespace sapwood {
namespace {

using Text = std::vector<int32_t>;
const Text kPrompt = {1, 2, 3, 4, 1, 2, 3};

TEST(CApi, TheExampleInCGivesTheSameTextInEveryMode) {
  Text first;
  for (const sapwood_mode mode : {SAPWOOD_PLAIN, SAPWOOD_CHAIN, SAPWOOD_FIXED, SAPWOOD_DYNAMIC}) {
    Text answer(40);
    sapwood_stats stats;
    ASSERT_EQ(c_api_example(opened_bundle().c_str(), "native", nullptr, mode, SAPWOOD_TARGET_DRAW,
                            kPrompt.data(), kPrompt.size(), answer.data(), answer.size(), &stats),
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

TEST(CApi, EveryVerifierAnswersAndCountsTheSlotsOfItsDrafts) {
  for (const sapwood_verifier verifier :
       {SAPWOOD_TARGET_DRAW, SAPWOOD_REJECTION, SAPWOOD_BLOCK, SAPWOOD_TRAVERSAL}) {
    Text answer(40);
    sapwood_stats stats;
    ASSERT_EQ(c_api_example(opened_bundle().c_str(), "native", "mix", SAPWOOD_CHAIN, verifier,
                            kPrompt.data(), kPrompt.size(), answer.data(), answer.size(), &stats),
              40)
        << sapwood_verifier_name(verifier);
    EXPECT_EQ(stats.verifier, verifier);
    EXPECT_GT(stats.peak_draft_slots, 0);
    EXPECT_LE(stats.peak_draft_slots, 4);  // a chain's default length
    EXPECT_DOUBLE_EQ(stats.mean_draft_slots,
                     static_cast<double>(stats.drafted_tokens) / static_cast<double>(stats.steps));
    EXPECT_NEAR(stats.beta, 0.3, 1e-6);
    EXPECT_EQ(stats.tuned_costs, 0);
  }
}

// Creates a session with these options and answers; empty, with the reason, where that is refused.
struct Answered {
  explicit Answered(const sapwood_session_options& options, Opened& opened) {
    if (sapwood_session_create(opened.engine, &options, &session) != SAPWOOD_OK) {
      why = sapwood_last_error();
      EXPECT_EQ(session, nullptr);
      return;
    }
    sapwood_generate_options generate;
    sapwood_generate_options_init(&generate, sizeof(generate));
    generate.max_new_tokens = 30;
    generate.ignore_eos = 1;
    EXPECT_EQ(sapwood_session_start(session, kPrompt.data(), kPrompt.size(), &generate), SAPWOOD_OK)
        << sapwood_last_error();
    for (;;) {
      const int32_t* tokens = nullptr;
      size_t count = 0;
      EXPECT_EQ(sapwood_session_step(session, &tokens, &count), SAPWOOD_OK);
      if (count == 0) break;
      text.insert(text.end(), tokens, tokens + count);
    }
    sapwood_stats_init(&stats, sizeof(stats));
    EXPECT_EQ(sapwood_session_stats(session, &stats), SAPWOOD_OK);
  }
  ~Answered() { sapwood_session_close(session); }

  sapwood_session* session = nullptr;
  std::string why;
  Text text;
  sapwood_stats stats;
};

TEST(CApi, EveryDrafterGivesTheSameTextAndOthersAreRefused) {
  Opened opened;
  sapwood_session_options options;
  sapwood_session_options_init(&options, sizeof(options));
  const Text expected = Answered(options, opened).text;
  ASSERT_EQ(expected.size(), 30u);
  for (const char* drafter : {"mix", "ngram", "successor", "none"}) {
    options.drafter = drafter;
    EXPECT_EQ(Answered(options, opened).text, expected) << drafter;
  }
  options.draft_bundle = opened_bundle().c_str();  // the target drafts for itself
  for (const char* drafter : {"model", "cascade"}) {
    options.drafter = drafter;
    const Answered answered(options, opened);
    EXPECT_EQ(answered.text, expected) << drafter << ' ' << answered.why;
  }
  const std::string draft = write_test_draft(opened_bundle(), {}).value();
  options.draft_bundle = draft.c_str();
  for (const char* drafter : {"head", "cascade"}) {
    options.drafter = drafter;
    const Answered answered(options, opened);
    EXPECT_EQ(answered.text, expected) << drafter << ' ' << answered.why;
  }
  for (const char* drafter : {"parallel-heads", "model", "mix"}) {
    options.drafter = drafter;
    EXPECT_NE(Answered(options, opened).why.find(drafter), std::string::npos);
  }
  options.draft_bundle = nullptr;
  for (const char* drafter : {"model", "head", "oracle"}) {
    options.drafter = drafter;
    EXPECT_NE(Answered(options, opened).why.find(drafter), std::string::npos);
  }
}

TEST(CApi, ASavedTableIsReadAndOneOfAnotherTokenizerIsRefused) {
  Opened opened;
  const Manifest manifest = Bundle::open(opened_bundle()).value().manifest();
  const std::string tokenizer = hexadecimal(manifest.file(manifest.tokenizer.file)->sha256);
  const std::vector<Text> texts = {{1, 2, 3, 4, 1, 2, 3, 4, 1, 2, 3, 4}};
  const std::string path = temporary_folder() + "/table";
  const int vocabulary = manifest.spec.vocabulary_size;
  ASSERT_TRUE(NgramTable::build(texts, vocabulary, tokenizer).value().write(path).ok());
  sapwood_session_options options;
  sapwood_session_options_init(&options, sizeof(options));
  options.ngram_table = path.c_str();
  const Answered answered(options, opened);
  EXPECT_EQ(answered.text.size(), 30u) << answered.why;
  ASSERT_TRUE(NgramTable::build(texts, vocabulary, std::string(64, 'a')).value().write(path).ok());
  EXPECT_NE(Answered(options, opened).why.find(path), std::string::npos);
  options.ngram_table = "no/such/table";
  EXPECT_NE(Answered(options, opened).why.find("no/such/table"), std::string::npos);
}

TEST(CApi, MeasuredCostsAreUsedWhereTheyWereMeasured) {
  Opened opened;
  const Manifest manifest = Bundle::open(opened_bundle()).value().manifest();
  const std::string path = temporary_folder() + "/costs.json";
  sapwood_session_options options;
  sapwood_session_options_init(&options, sizeof(options));
  options.measured_costs = path.c_str();
  sapwood_engine* one_thread = nullptr;
  sapwood_engine_options engine_options;
  sapwood_engine_options_init(&engine_options, sizeof(engine_options));
  engine_options.threads = 1;
  ASSERT_EQ(sapwood_engine_open(opened_bundle().c_str(), &engine_options, &one_thread), SAPWOOD_OK);
  std::swap(opened.engine, one_thread);
  sapwood_engine_close(one_thread);
  std::string kv = "float16";
  const auto write = [&](const std::string& weights, int threads, const std::string& times) {
    write_text(path, R"({"schema_version": 1, "key": {"processor": "any", "sapwood_version": "0",)"
                     R"("host": "native", "kernels": ")" +
                         std::string(kernels().name) + R"(", "kv": ")" + kv + R"(", "threads": )" +
                         std::to_string(threads) + R"(, "weights_sha256": ")" + weights +
                         R"("}, "contexts": [16, 64], "rows": [1, 8], "milliseconds": )" + times +
                         "}");
  };
  const std::string weights = hexadecimal(manifest.file(manifest.weights_file)->sha256);
  write(weights, 1, "[[1.0, 1.5], [1.2, 1.8]]");
  const Answered answered(options, opened);
  EXPECT_EQ(answered.text.size(), 30u) << answered.why;
  EXPECT_EQ(answered.stats.tuned_costs, 1);
  const auto refusal = [&] {
    const std::string why = Answered(options, opened).why;
    EXPECT_NE(why.find(path), std::string::npos);
    EXPECT_EQ(why.find('\n'), std::string::npos);
    return why;
  };
  options.kv = "int8";
  EXPECT_NE(refusal().find(", not with int8;"), std::string::npos);
  kv = "int8";
  write(weights, 1, "[[1.0, 1.5], [1.2, 1.8]]");
  EXPECT_EQ(Answered(options, opened).stats.tuned_costs, 1);
  write(weights, 7, "[[1.0, 1.5], [1.2, 1.8]]");
  EXPECT_NE(refusal().find("7 threads, not with 1 threads"), std::string::npos);
  write(std::string(64, '0'), 1, "[[1.0, 1.5], [1.2, 1.8]]");
  EXPECT_NE(refusal().find("other weights"), std::string::npos);
  for (const char* times : {"[[1.0, 1.5]]", "[[1.0, 1.5], [1.2, 0.0]]", "7", "[1, 2, 3, 4]",
                            R"([[1.0, 1.5], [1.2, "x"]])"}) {
    write(weights, 1, times);
    refusal();
  }
  write_text(path, "[]");
  refusal();
  options.measured_costs = "no/such/costs";
  EXPECT_NE(Answered(options, opened).why.find("no/such/costs"), std::string::npos);
}

TEST(CApi, ErrorsAreCodesAndOneLine) {
  sapwood_engine* engine = reinterpret_cast<sapwood_engine*>(1);
  EXPECT_NE(sapwood_engine_open("no/such/bundle", nullptr, &engine), SAPWOOD_OK);
  EXPECT_EQ(engine, nullptr);
  const std::string message = sapwood_last_error();
  EXPECT_NE(message.find("no/such/bundle"), std::string::npos);
  EXPECT_EQ(message.find('\n'), std::string::npos);

  sapwood_engine_options options;
  sapwood_engine_options_init(&options, sizeof(options));
  options.host = "gpu";
  EXPECT_EQ(sapwood_engine_open(opened_bundle().c_str(), &options, &engine),
            SAPWOOD_INVALID_ARGUMENT);
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
  sapwood_session_options_init(&session_options, sizeof(session_options));
  session_options.context_length = 1 << 30;
  sapwood_session* session = nullptr;
  EXPECT_EQ(sapwood_session_create(opened.engine, &session_options, &session),
            SAPWOOD_INVALID_ARGUMENT);
  EXPECT_EQ(session, nullptr);
  sapwood_session_options_init(&session_options, sizeof(session_options));
  session_options.kv = "int3";
  EXPECT_EQ(sapwood_session_create(opened.engine, &session_options, &session),
            SAPWOOD_INVALID_ARGUMENT);
  EXPECT_NE(std::string(sapwood_last_error()).find("int8"), std::string::npos);
  session_options.kv = "int8";
  EXPECT_EQ(sapwood_session_create(opened.engine, &session_options, &session), SAPWOOD_OK)
      << sapwood_last_error();
  sapwood_session_close(session);
}

TEST(CApi, ABadModeVerifierRuleOrBetaIsRefused) {
  Opened opened;
  sapwood_generate_options options;
  sapwood_generate_options_init(&options, sizeof(options));
  const auto refused = [&] {
    return sapwood_session_start(opened.session, kPrompt.data(), kPrompt.size(), &options) ==
           SAPWOOD_INVALID_ARGUMENT;
  };
  options.mode = 9;
  EXPECT_TRUE(refused());
  sapwood_generate_options_init(&options, sizeof(options));
  options.verifier = 4;
  EXPECT_TRUE(refused());
  options.verifier = SAPWOOD_BLOCK;
  options.mode = SAPWOOD_FIXED;
  EXPECT_TRUE(refused());
  EXPECT_NE(std::string(sapwood_last_error()).find("judges chains"), std::string::npos);
  sapwood_generate_options_init(&options, sizeof(options));
  options.length_rule = -1;
  EXPECT_TRUE(refused());
  sapwood_generate_options_init(&options, sizeof(options));
  options.beta = 2.f;
  EXPECT_TRUE(refused());
}

TEST(CApi, AnswersEndAtTheCallersTokensAndCuts) {
  Opened opened;
  sapwood_generate_options options;
  sapwood_generate_options_init(&options, sizeof(options));
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

TEST(CApi, ASessionAfterAClosedOneComputesOnlyTheRestAndOneBesideItAllOfIt) {
  const std::string draft = write_test_draft(opened_bundle(), {}).value();
  for (const char* drafter : {"mix", "head", "cascade"}) {
    Opened opened;  // its session has not read anything
    sapwood_session_options options;
    sapwood_session_options_init(&options, sizeof(options));
    options.drafter = drafter;
    if (drafter != std::string("mix")) options.draft_bundle = draft.c_str();
    const int32_t size = static_cast<int32_t>(kPrompt.size());
    Text expected;
    {
      const Answered first(options, opened);
      expected = first.text;
      ASSERT_EQ(expected.size(), 30u) << first.why;
      EXPECT_EQ(first.stats.reused_prompt_tokens, 0);
      const Answered beside(options, opened);
      EXPECT_EQ(beside.text, expected);
      EXPECT_EQ(beside.stats.reused_prompt_tokens, 0);
    }
    const Answered after(options, opened);
    EXPECT_EQ(after.text, expected);
    EXPECT_GE(after.stats.reused_prompt_tokens, size - 2) << drafter;
    options.share_prefixes = 0;
    const Answered alone(options, opened);
    EXPECT_EQ(alone.text, expected);
    EXPECT_EQ(alone.stats.reused_prompt_tokens, 0);
    options.kv_slots = 20;
    EXPECT_NE(Answered(options, opened).why.find("at least"), std::string::npos);
  }
}

TEST(CApi, TheVersionIsTheProjects) {
  const std::string version = sapwood_version();
  EXPECT_EQ(std::count(version.begin(), version.end(), '.'), 2) << version;
  EXPECT_STREQ(sapwood_mode_name(SAPWOOD_FIXED), "fixed");
  EXPECT_STREQ(sapwood_mode_name(9), "unknown");
  EXPECT_STREQ(sapwood_stop_reason_name(-1), "unknown");
  EXPECT_STREQ(sapwood_verifier_name(SAPWOOD_TRAVERSAL), "traversal");
  EXPECT_STREQ(sapwood_verifier_name(4), "unknown");
}

}  // namespace
}  // namespace sapwood
