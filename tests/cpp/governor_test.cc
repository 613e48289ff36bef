// The governor under heat scripts: every state once each way, and no flapping at a threshold.
#include "engine/governor.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <random>
#include <vector>

namespace sapwood {
namespace {

TEST(Governor, ARampFrom40To60AndBackGoesThroughEveryStateOnceEachWay) {
  Governor governor;
  std::vector<Heat> states = {governor.heat()};
  for (int tick = 0; tick <= 800; ++tick) {  // 0.1 s each; a quarter of a degree every half second
    const double seconds = tick * 0.1;
    const double ramp = 40 + seconds / 2;
    const auto celsius = static_cast<float>(seconds <= 40 ? ramp : 100 - ramp);
    if (governor.observe(seconds, {.celsius = celsius})) states.push_back(governor.heat());
  }
  EXPECT_EQ(states, (std::vector<Heat>{Heat::kCool, Heat::kWarm, Heat::kHot, Heat::kCritical,
                                       Heat::kHot, Heat::kWarm, Heat::kCool}));
}

TEST(Governor, EveryStateMeansWhatTheTableSays) {
  Governor governor;
  EXPECT_EQ(governor.beta_added(), 0.f);
  EXPECT_EQ(governor.width(9), 9);
  ASSERT_TRUE(governor.observe(0, {.celsius = 45.5f}));
  EXPECT_EQ(governor.beta_added(), 0.1f);
  EXPECT_EQ(governor.width(9), 9);
  EXPECT_TRUE(governor.may_draft());
  ASSERT_TRUE(governor.observe(1, {.celsius = 50.5f}));
  EXPECT_EQ(governor.beta_added(), 0.2f);
  EXPECT_EQ(governor.width(9), 5);
  EXPECT_EQ(governor.width(1), 1);
  EXPECT_TRUE(governor.may_draft());
  ASSERT_TRUE(governor.observe(2, {.celsius = 55.5f}));
  EXPECT_FALSE(governor.may_draft());
  EXPECT_EQ(heat_name(governor.heat()), "critical");
}

TEST(Governor, PowerAboveTheBudgetIsLikeBeingWarmAndNoMore) {
  Governor governor;
  EXPECT_FALSE(governor.observe(0, {.watts = 3.9f}));
  EXPECT_TRUE(governor.observe(1, {.watts = 9.f}));
  EXPECT_EQ(governor.heat(), Heat::kWarm);
  EXPECT_FALSE(governor.observe(2, {.celsius = 48.f, .watts = 9.f}));
  EXPECT_FALSE(governor.observe(3, DeviceReadings())) << "no sensor, no change";
}

TEST(Governor, BetweenTheThresholdsItStaysAsItIs) {
  Governor governor;
  governor.observe(0, {.celsius = 56.f});
  for (int second = 1; second < 1000; ++second) {
    EXPECT_FALSE(governor.observe(second, {.celsius = 46.f}));
  }
  EXPECT_EQ(governor.heat(), Heat::kCritical);
}

TEST(Governor, ADeviceThatRelapsesAtOnceIsLeftAloneForLongerAndLonger) {
  Governor governor;
  double seconds = 0;
  std::vector<double> calm;
  for (int relapse = 0; relapse < 8; ++relapse) {
    ASSERT_TRUE(governor.observe(seconds, {.celsius = 46.f}));
    const double begin = seconds += 0.1;
    while (!governor.observe(seconds, {.celsius = 44.f})) seconds += 0.1;
    calm.push_back(seconds - begin);
    seconds += 0.1;
  }
  for (size_t i = 0; i < calm.size(); ++i) {
    EXPECT_NEAR(calm[i], std::min(std::ldexp(2.0, static_cast<int>(i)), 64.0), 0.2) << i;
  }
  // After a long calm it begins anew.
  seconds += 1000;
  ASSERT_TRUE(governor.observe(seconds, {.celsius = 46.f}));
  const double begin = seconds += 0.1;
  while (!governor.observe(seconds, {.celsius = 44.f})) seconds += 0.1;
  EXPECT_NEAR(seconds - begin, 2, 0.2);
}

TEST(Governor, AnyWeatherChangesFallsByOneStateAndNeverWithoutCalm) {
  std::mt19937 random(4);
  for (int round = 0; round < 50; ++round) {
    Governor governor;
    float celsius = 40;
    double calm_since = 0;
    for (int tick = 0; tick < 2000; ++tick) {
      const double seconds = tick * 0.25;
      celsius = std::clamp(celsius + static_cast<float>(random() % 41) / 10.f - 2.f, 30.f, 70.f);
      if (celsius > 45) calm_since = seconds + 0.25;
      const Heat before = governor.heat();
      if (!governor.observe(seconds, {.celsius = celsius})) continue;
      if (governor.heat() < before) {
        EXPECT_EQ(static_cast<int>(governor.heat()), static_cast<int>(before) - 1);
        EXPECT_GE(seconds - calm_since, 2 - 1e-9);
      }
    }
  }
}

TEST(Governor, AndroidsThermalStatusCountsLikeTheTemperatureItStandsFor) {
  constexpr std::array<Heat, 8> kExpected = {Heat::kCool,     Heat::kWarm,     Heat::kWarm,
                                             Heat::kHot,      Heat::kCritical, Heat::kCritical,
                                             Heat::kCritical, Heat::kCritical};
  for (size_t status = 0; status < kExpected.size(); ++status) {
    Governor governor;
    governor.observe(0, {.thermal_status = static_cast<int>(status)});
    EXPECT_EQ(governor.heat(), kExpected[status]) << status;
    if (status > 0) {
      EXPECT_EQ(governor.heat_reason(), Reason::kThermalStatus);
    }
  }
  Governor governor;
  ASSERT_TRUE(governor.observe(0, {.celsius = 51.f, .thermal_status = 1}));
  EXPECT_EQ(governor.heat(), Heat::kHot) << "the worse of the two";
  EXPECT_EQ(governor.heat_reason(), Reason::kTemperature);
}

TEST(Governor, ThePowerBudgetIsTheReadings) {
  Governor governor;
  EXPECT_FALSE(governor.observe(0, {.watts = 5.f, .watts_budget = 6.f}));
  ASSERT_TRUE(governor.observe(1, {.watts = 5.f, .watts_budget = 2.f}));
  EXPECT_EQ(governor.heat_reason(), Reason::kPower);
}

TEST(Governor, MemoryPressureNarrowsAndThenLeavesAChain) {
  struct Case {
    DeviceReadings readings;
    MemoryPressure pressure;
  };
  const std::vector<Case> cases = {{{.memory_used = 0.89f}, MemoryPressure::kNone},
                                   {{.memory_used = 0.9f}, MemoryPressure::kLow},
                                   {{.memory_used = 0.97f}, MemoryPressure::kCritical},
                                   {{.trim_level = 0}, MemoryPressure::kNone},
                                   {{.trim_level = 5}, MemoryPressure::kNone},
                                   {{.trim_level = 10}, MemoryPressure::kLow},
                                   {{.trim_level = 15}, MemoryPressure::kCritical},
                                   {{.trim_level = 20}, MemoryPressure::kNone},
                                   {{.trim_level = 40}, MemoryPressure::kLow},
                                   {{.trim_level = 60}, MemoryPressure::kLow},
                                   {{.trim_level = 80}, MemoryPressure::kCritical},
                                   {{.memory_used = 0.5f, .trim_level = 10}, MemoryPressure::kLow}};
  for (const Case& each : cases) {
    Governor governor;
    governor.observe(0, each.readings);
    EXPECT_EQ(governor.memory_pressure(), each.pressure);
    EXPECT_EQ(governor.width(9), each.pressure == MemoryPressure::kNone ? 9 : 5);
    EXPECT_EQ(governor.may_branch(), each.pressure != MemoryPressure::kCritical);
    EXPECT_TRUE(governor.may_draft());
    EXPECT_EQ(governor.heat(), Heat::kCool);
  }
  Governor governor;
  ASSERT_TRUE(governor.observe(0, {.trim_level = 15}));
  EXPECT_EQ(governor.memory_reason(), Reason::kMemoryPressure);
  EXPECT_FALSE(governor.observe(100, {.celsius = 30.f})) << "says nothing of memory";
  std::vector<MemoryPressure> states;
  for (int second = 101; second < 120; ++second) {
    if (governor.observe(second, {.trim_level = 0})) states.push_back(governor.memory_pressure());
  }
  EXPECT_EQ(states, (std::vector<MemoryPressure>{MemoryPressure::kLow, MemoryPressure::kNone}));
  EXPECT_EQ(governor.memory_reason(), Reason::kRecovered);
}

}  // namespace
}  // namespace sapwood
