#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

#include "c_api_opened.h"
#include "sapwood/sapwood.h"

namespace sapwood {
namespace {

const std::vector<int32_t> kPrompt = {1, 2, 3, 4, 1, 2, 3};

TEST(CApiStructures, StructuresOfTheFirstHeaderGoOnWorking) {
  Opened opened;
  sapwood_session_options session_options;
  sapwood_session_options_init(&session_options, sizeof(session_options));
  session_options.size = offsetof(sapwood_session_options, drafter);
  session_options.drafter = reinterpret_cast<const char*>(1);  // not there for such a caller
  sapwood_session* session = nullptr;
  ASSERT_EQ(sapwood_session_create(opened.engine, &session_options, &session), SAPWOOD_OK);
  sapwood_generate_options options;
  sapwood_generate_options_init(&options, sizeof(options));
  options.size = offsetof(sapwood_generate_options, verifier);
  options.verifier = 99;
  EXPECT_EQ(sapwood_session_start(session, kPrompt.data(), kPrompt.size(), &options), SAPWOOD_OK);
  sapwood_stats stats;
  sapwood_stats_init(&stats, sizeof(stats));
  stats.size = offsetof(sapwood_stats, verifier);
  stats.verifier = 99;
  EXPECT_EQ(sapwood_session_stats(session, &stats), SAPWOOD_OK);
  EXPECT_EQ(stats.prompt_tokens, 7);
  EXPECT_EQ(stats.verifier, 99);  // nothing is written beyond what the caller has
  sapwood_session_close(session);
}

TEST(CApiStructures, OptionsOfACallerThatKnowsFewerOfThemAreTaken) {
  Opened opened;
  sapwood_session_options options;
  sapwood_session_options_init(&options, sizeof(options));
  options.size = offsetof(sapwood_session_options, kv);
  options.kv = "of a newer version";  // beyond what the caller says it has
  sapwood_session* session = nullptr;
  EXPECT_EQ(sapwood_session_create(opened.engine, &options, &session), SAPWOOD_OK)
      << sapwood_last_error();
  sapwood_session_close(session);
}

TEST(CApiStructures, AnOptionsStructureThatWasNotInitialisedIsRefused) {
  Opened opened;
  sapwood_generate_options options = {};
  EXPECT_EQ(sapwood_session_start(opened.session, kPrompt.data(), kPrompt.size(), &options),
            SAPWOOD_INVALID_ARGUMENT);
  EXPECT_NE(std::string(sapwood_last_error()).find("_init"), std::string::npos);
  sapwood_stats stats = {};
  EXPECT_EQ(sapwood_session_stats(opened.session, &stats), SAPWOOD_INVALID_ARGUMENT);
}

// What a program has around a structure of another header: bytes that are not the library's.
template <typename Structure>
struct Framed {
  explicit Framed(size_t size) : size(size) { bytes.fill(0x5a); }
  Structure* structure() { return reinterpret_cast<Structure*>(bytes.data()); }
  void expect_nothing_beyond() const {
    EXPECT_TRUE(std::all_of(bytes.begin() + static_cast<ptrdiff_t>(size), bytes.end(),
                            [](uint8_t byte) { return byte == 0x5a; }));
  }

  size_t size;
  alignas(std::max_align_t) std::array<uint8_t, 2 * sizeof(Structure)> bytes;
};

TEST(CApiStructures, ProgramsOfOlderAndNewerHeadersKeepWhatLiesBehindTheirStructures) {
  Opened opened;
  for (const size_t size :
       {offsetof(sapwood_generate_options, verifier), sizeof(sapwood_generate_options),
        sizeof(sapwood_generate_options) + 16}) {
    Framed<sapwood_generate_options> options(size);
    sapwood_generate_options_init(options.structure(), size);
    options.structure()->max_new_tokens = 3;
    options.structure()->ignore_eos = 1;
    EXPECT_EQ(
        sapwood_session_start(opened.session, kPrompt.data(), kPrompt.size(), options.structure()),
        SAPWOOD_OK)
        << sapwood_last_error();
    for (size_t count = 1; count > 0;) {
      const int32_t* tokens = nullptr;
      ASSERT_EQ(sapwood_session_step(opened.session, &tokens, &count), SAPWOOD_OK);
    }
    options.expect_nothing_beyond();
  }
  for (const size_t size :
       {offsetof(sapwood_stats, verifier), sizeof(sapwood_stats), sizeof(sapwood_stats) + 16}) {
    Framed<sapwood_stats> stats(size);
    sapwood_stats_init(stats.structure(), size);
    EXPECT_EQ(sapwood_session_stats(opened.session, stats.structure()), SAPWOOD_OK);
    EXPECT_EQ(stats.structure()->emitted_tokens, 3);
    EXPECT_EQ(stats.structure()->size, size);
    stats.expect_nothing_beyond();
  }
  Framed<sapwood_engine_options> engine(offsetof(sapwood_engine_options, executorch_library));
  sapwood_engine_options_init(engine.structure(), engine.size);
  sapwood_engine* older = nullptr;
  EXPECT_EQ(sapwood_engine_open(opened_bundle().c_str(), engine.structure(), &older), SAPWOOD_OK);
  sapwood_engine_close(older);
  engine.expect_nothing_beyond();
  Framed<sapwood_session_options> session(offsetof(sapwood_session_options, kv));
  sapwood_session_options_init(session.structure(), session.size);
  sapwood_session* made = nullptr;
  EXPECT_EQ(sapwood_session_create(opened.engine, session.structure(), &made), SAPWOOD_OK);
  sapwood_session_close(made);
  session.expect_nothing_beyond();
}

}  // namespace
}  // namespace sapwood
