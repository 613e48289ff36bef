#include <gtest/gtest.h>

#include <algorithm>
#include <cmath>
#include <filesystem>
#include <iterator>
#include <limits>
#include <string>
#include <vector>

#include "base/file_map.h"
#include "make_test_bundle.h"
#include "sapwood/sapwood.h"
#include "temporary_folder.h"

namespace sapwood {
namespace {

const double kNone = std::nan("");

sapwood_readings heat(double celsius, double watts = kNone) {
  sapwood_readings readings;
  sapwood_readings_init(&readings, sizeof(readings));
  readings.celsius = celsius;
  readings.watts = watts;
  return readings;
}

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

  sapwood_code observe(const sapwood_readings& readings) {
    return sapwood_session_observe(session_, &readings);
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
  ASSERT_EQ(observe(heat(56)), SAPWOOD_OK);
  EXPECT_EQ(answer(), cool);
  EXPECT_EQ(stats().heat, SAPWOOD_CRITICAL);
  EXPECT_EQ(stats().drafted_tokens, 0);
  EXPECT_STREQ(sapwood_heat_name(stats().heat), "critical");
}

TEST_F(CApiWatch, PowerAboveTheBudgetIsLikeBeingWarmAndNoSensorIsNoReading) {
  ASSERT_EQ(observe(heat(kNone)), SAPWOOD_OK);
  answer();
  EXPECT_EQ(stats().heat, SAPWOOD_COOL);
  ASSERT_EQ(observe(heat(kNone, 4.5)), SAPWOOD_OK);
  EXPECT_EQ(stats().heat, SAPWOOD_WARM);
}

TEST_F(CApiWatch, TheBatterysCurrentIsPowerHeldAgainstTheBudget) {
  sapwood_readings readings = heat(30);
  readings.battery_amperes = -1.5;  // some devices say what flows in
  readings.battery_volts = 4;
  readings.watts_budget = 7;
  ASSERT_EQ(observe(readings), SAPWOOD_OK);
  EXPECT_EQ(stats().heat, SAPWOOD_COOL);
  readings.watts_budget = 5;
  ASSERT_EQ(observe(readings), SAPWOOD_OK);
  EXPECT_EQ(stats().heat, SAPWOOD_WARM);
  EXPECT_EQ(stats().heat_reason, SAPWOOD_REASON_POWER);
}

TEST_F(CApiWatch, ThermalStatusAndMemoryPressureReachTheStatisticsAndTheTraceWithTheirReasons) {
  const std::vector<int32_t> well = answer();
  ASSERT_EQ(sapwood_session_trace(session_, 1 << 12), SAPWOOD_OK);
  sapwood_readings readings = heat(kNone);
  readings.thermal_status = 3;
  readings.trim_level = 15;
  ASSERT_EQ(observe(readings), SAPWOOD_OK);
  EXPECT_EQ(answer(), well);
  const sapwood_stats now = stats();
  EXPECT_EQ(now.heat, SAPWOOD_HOT);
  EXPECT_EQ(now.heat_reason, SAPWOOD_REASON_THERMAL_STATUS);
  EXPECT_EQ(now.memory_pressure, SAPWOOD_MEMORY_CRITICAL);
  EXPECT_EQ(now.memory_reason, SAPWOOD_REASON_MEMORY_PRESSURE);
  const auto events = take();
  EXPECT_EQ(count_of(events, "heat change"), 1);
  EXPECT_EQ(count_of(events, "memory pressure change"), 1);
  for (const sapwood_trace_event& event : events) {
    const std::string name = sapwood_trace_event_name(event.name);
    const std::string reason = sapwood_reason_name(event.reason);
    if (name == "heat change") {
      EXPECT_EQ(static_cast<int>(event.value), SAPWOOD_HOT);
      EXPECT_EQ(reason, "thermal status");
    }
    if (name == "memory pressure change") {
      EXPECT_EQ(reason, "memory pressure");
    }
  }
}

TEST_F(CApiWatch, ReadingsThatCannotBeAreRefused) {
  const double infinite = std::numeric_limits<double>::infinity();
  EXPECT_EQ(observe(heat(infinite)), SAPWOOD_INVALID_ARGUMENT);
  EXPECT_EQ(observe(heat(60, -1)), SAPWOOD_INVALID_ARGUMENT);
  sapwood_readings readings = heat(60);
  EXPECT_EQ(sapwood_session_observe(nullptr, &readings), SAPWOOD_INVALID_ARGUMENT);
  EXPECT_EQ(sapwood_session_observe(session_, nullptr), SAPWOOD_INVALID_ARGUMENT);
  for (const double share : {-0.1, 1.1}) {
    readings.memory_used = share;
    EXPECT_EQ(observe(readings), SAPWOOD_INVALID_ARGUMENT);
  }
  readings = heat(60);
  readings.watts_budget = kNone;
  EXPECT_EQ(observe(readings), SAPWOOD_INVALID_ARGUMENT);
  readings = heat(60);
  readings.battery_amperes = infinite;
  readings.battery_volts = 4;
  EXPECT_EQ(observe(readings), SAPWOOD_INVALID_ARGUMENT);
  readings = {};
  EXPECT_EQ(observe(readings), SAPWOOD_INVALID_ARGUMENT) << "not initialised";
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

TEST_F(CApiWatch, ATraceIsWrittenWholeOrNotAtAll) {
  const std::string folder = temporary_folder();
  const std::string file = folder + "/answer.perfetto-trace";
  size_t count = 0;
  EXPECT_EQ(sapwood_session_save_trace(session_, file.c_str(), &count, nullptr),
            SAPWOOD_INVALID_ARGUMENT);  // nothing is being recorded
  ASSERT_EQ(sapwood_session_trace(session_, 8), SAPWOOD_OK);
  answer();
  uint64_t lost = 0;
  ASSERT_EQ(sapwood_session_save_trace(session_, file.c_str(), &count, &lost), SAPWOOD_OK)
      << sapwood_last_error();
  EXPECT_EQ(count, 8u);
  EXPECT_GT(lost, 0u);
  EXPECT_TRUE(take().empty());
  const std::string written = read_file(file, 1 << 20).value();
  EXPECT_NE(written.find("Target_Verify"), std::string::npos);
  const std::string nowhere = folder + "/none/answer.perfetto-trace";
  EXPECT_EQ(sapwood_session_save_trace(session_, nowhere.c_str(), nullptr, nullptr),
            SAPWOOD_INVALID_ARGUMENT);
  EXPECT_NE(std::string(sapwood_last_error()).find(nowhere), std::string::npos);
  EXPECT_EQ(sapwood_session_save_trace(session_, nullptr, nullptr, nullptr),
            SAPWOOD_INVALID_ARGUMENT);
  const auto inside = std::filesystem::directory_iterator(folder);
  EXPECT_EQ(std::distance(begin(inside), end(inside)), 1);
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
  EXPECT_STREQ(sapwood_memory_pressure_name(2), "critical");
  EXPECT_STREQ(sapwood_memory_pressure_name(3), "unknown");
  EXPECT_STREQ(sapwood_reason_name(SAPWOOD_REASON_NONE), "");
  EXPECT_STREQ(sapwood_reason_name(-1), "unknown");
  EXPECT_STREQ(sapwood_reason_name(99), "unknown");
}

}  // namespace
}  // namespace sapwood
