#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <string>
#include <vector>

#include "make_test_bundle.h"
#include "sapwood/sapwood.h"

namespace sapwood {
namespace {

const double kNone = std::nan("");

class CApiWatch : public testing::Test {
 protected:
  void SetUp() override {
    static const std::string path = write_test_bundle(test_bundle_options("llama")).value();
    ASSERT_EQ(sapwood_engine_open(path.c_str(), nullptr, &engine_), SAPWOOD_OK)
        << sapwood_last_error();
    ASSERT_EQ(sapwood_session_create(engine_, nullptr, &session_), SAPWOOD_OK)
        << sapwood_last_error();
  }
  void TearDown() override {
    sapwood_session_close(session_);
    sapwood_engine_close(engine_);
  }

  std::vector<int32_t> answer() {
    sapwood_generate_options options;
    sapwood_generate_options_init(&options, sizeof(options));
    options.max_new_tokens = 24;
    options.ignore_eos = 1;
    const std::vector<int32_t> prompt = {1, 2, 3, 4, 1, 2, 3};
    EXPECT_EQ(sapwood_session_start(session_, prompt.data(), prompt.size(), &options), SAPWOOD_OK);
    std::vector<int32_t> text;
    const int32_t* tokens = nullptr;
    size_t count = 0;
    do {
      EXPECT_EQ(sapwood_session_step(session_, &tokens, &count), SAPWOOD_OK);
      text.insert(text.end(), tokens, tokens + count);
    } while (count > 0);
    return text;
  }

  sapwood_stats stats() {
    sapwood_stats of;
    sapwood_stats_init(&of, sizeof(of));
    EXPECT_EQ(sapwood_session_stats(session_, &of), SAPWOOD_OK);
    return of;
  }

  std::vector<sapwood_trace_event> take(uint64_t* lost = nullptr) {
    const sapwood_trace_event* events = nullptr;
    size_t count = 0;
    EXPECT_EQ(sapwood_session_take_trace(session_, &events, &count, lost), SAPWOOD_OK);
    return {events, events + count};
  }

  static int count_of(const std::vector<sapwood_trace_event>& events, const std::string& name) {
    return static_cast<int>(std::count_if(events.begin(), events.end(), [&](const auto& event) {
      return sapwood_trace_event_name(event.name) == name;
    }));
  }

  sapwood_engine* engine_ = nullptr;
  sapwood_session* session_ = nullptr;
};

TEST_F(CApiWatch, AHotDeviceDraftsNothingAndSaysTheSame) {
  const std::vector<int32_t> cool = answer();
  EXPECT_EQ(stats().heat, SAPWOOD_COOL);
  EXPECT_GT(stats().drafted_tokens, 0);
  ASSERT_EQ(sapwood_session_observe_heat(session_, 56, kNone), SAPWOOD_OK);
  EXPECT_EQ(answer(), cool);
  EXPECT_EQ(stats().heat, SAPWOOD_CRITICAL);
  EXPECT_EQ(stats().drafted_tokens, 0);
  EXPECT_STREQ(sapwood_heat_name(stats().heat), "critical");
}

TEST_F(CApiWatch, PowerAboveTheBudgetIsLikeBeingWarmAndNoSensorIsNoReading) {
  ASSERT_EQ(sapwood_session_observe_heat(session_, kNone, kNone), SAPWOOD_OK);
  answer();
  EXPECT_EQ(stats().heat, SAPWOOD_COOL);
  ASSERT_EQ(sapwood_session_observe_heat(session_, kNone, 4.5), SAPWOOD_OK);
  EXPECT_EQ(stats().heat, SAPWOOD_WARM);
}

TEST_F(CApiWatch, ReadingsThatCannotBeAreRefused) {
  const double infinite = std::numeric_limits<double>::infinity();
  EXPECT_EQ(sapwood_session_observe_heat(session_, infinite, kNone), SAPWOOD_INVALID_ARGUMENT);
  EXPECT_EQ(sapwood_session_observe_heat(session_, 20, -1), SAPWOOD_INVALID_ARGUMENT);
  EXPECT_EQ(sapwood_session_observe_heat(nullptr, 20, 1), SAPWOOD_INVALID_ARGUMENT);
  EXPECT_EQ(stats().heat, SAPWOOD_COOL);
}

TEST_F(CApiWatch, EveryStepIsTakenOnceAndNothingWhereNothingIsRecorded) {
  const std::vector<int32_t> untraced = answer();
  EXPECT_TRUE(take().empty());
  ASSERT_EQ(sapwood_session_trace(session_, 1 << 12), SAPWOOD_OK);
  uint64_t lost = 1;
  for (int repeat = 0; repeat < 2; ++repeat) {
    EXPECT_EQ(answer(), untraced);
    const auto events = take(&lost);
    EXPECT_EQ(lost, 0u);
    EXPECT_EQ(count_of(events, "Target_Verify"), stats().steps);
    for (const sapwood_trace_event& event : events) {
      EXPECT_GT(event.begin_ns, 0);
      EXPECT_GE(event.duration_ns, 0);
      if (sapwood_trace_event_kind(event.name) != SAPWOOD_TRACE_STAGE) {
        EXPECT_EQ(event.duration_ns, 0);
      }
    }
    EXPECT_TRUE(take().empty());
  }
  ASSERT_EQ(sapwood_session_trace(session_, 0), SAPWOOD_OK);
  answer();
  EXPECT_TRUE(take().empty());
}

TEST_F(CApiWatch, WhatTheRingHadNoRoomForIsCounted) {
  ASSERT_EQ(sapwood_session_trace(session_, 8), SAPWOOD_OK);
  answer();
  uint64_t lost = 0;
  EXPECT_EQ(take(&lost).size(), 8u);
  EXPECT_GT(lost, 0u);
  EXPECT_EQ(sapwood_session_trace(session_, -1), SAPWOOD_INVALID_ARGUMENT);
  EXPECT_EQ(sapwood_session_take_trace(session_, nullptr, nullptr, nullptr),
            SAPWOOD_INVALID_ARGUMENT);
}

TEST(CApiWatchNames, EveryNameHasAKindAndATrackAndOthersAreUnknown) {
  for (int32_t name = 0; name < sapwood_trace_names(); ++name) {
    EXPECT_STRNE(sapwood_trace_event_name(name), "unknown");
    EXPECT_GE(sapwood_trace_event_kind(name), SAPWOOD_TRACE_STAGE);
    EXPECT_STRNE(sapwood_trace_event_track(name), "unknown");
  }
  for (const int32_t outside : {-1, sapwood_trace_names()}) {
    EXPECT_STREQ(sapwood_trace_event_name(outside), "unknown");
    EXPECT_EQ(sapwood_trace_event_kind(outside), -1);
    EXPECT_STREQ(sapwood_trace_event_track(outside), "unknown");
  }
  EXPECT_STREQ(sapwood_heat_name(4), "unknown");
}

}  // namespace
}  // namespace sapwood
