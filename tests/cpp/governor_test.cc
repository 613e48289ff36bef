// The governor under heat scripts: every state once each way, and no flapping at a threshold.
#include "engine/governor.h"

#include <gtest/gtest.h>

#include <algorithm>
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
    if (governor.observe(seconds, celsius, {})) states.push_back(governor.heat());
  }
  EXPECT_EQ(states, (std::vector<Heat>{Heat::kCool, Heat::kWarm, Heat::kHot, Heat::kCritical,
                                       Heat::kHot, Heat::kWarm, Heat::kCool}));
}

TEST(Governor, EveryStateMeansWhatTheTableSays) {
  Governor governor;
  EXPECT_EQ(governor.beta_added(), 0.f);
  EXPECT_EQ(governor.width(9), 9);
  ASSERT_TRUE(governor.observe(0, 45.5f, {}));
  EXPECT_EQ(governor.beta_added(), 0.1f);
  EXPECT_EQ(governor.width(9), 9);
  EXPECT_TRUE(governor.may_draft());
  ASSERT_TRUE(governor.observe(1, 50.5f, {}));
  EXPECT_EQ(governor.beta_added(), 0.2f);
  EXPECT_EQ(governor.width(9), 5);
  EXPECT_EQ(governor.width(1), 1);
  EXPECT_TRUE(governor.may_draft());
  ASSERT_TRUE(governor.observe(2, 55.5f, {}));
  EXPECT_FALSE(governor.may_draft());
  EXPECT_EQ(heat_name(governor.heat()), "critical");
}

TEST(Governor, PowerAboveTheBudgetIsLikeBeingWarmAndNoMore) {
  Governor governor;
  EXPECT_FALSE(governor.observe(0, {}, 3.9f));
  EXPECT_TRUE(governor.observe(1, {}, 9.f));
  EXPECT_EQ(governor.heat(), Heat::kWarm);
  EXPECT_FALSE(governor.observe(2, 48.f, 9.f));
  EXPECT_FALSE(governor.observe(3, {}, {})) << "no sensor, no change";
}

TEST(Governor, BetweenTheThresholdsItStaysAsItIs) {
  Governor governor;
  governor.observe(0, 56.f, {});
  for (int second = 1; second < 1000; ++second) {
    EXPECT_FALSE(governor.observe(second, 46.f, {}));
  }
  EXPECT_EQ(governor.heat(), Heat::kCritical);
}

TEST(Governor, ADeviceThatRelapsesAtOnceIsLeftAloneForLongerAndLonger) {
  Governor governor;
  double seconds = 0;
  std::vector<double> calm;
  for (int relapse = 0; relapse < 8; ++relapse) {
    ASSERT_TRUE(governor.observe(seconds, 46.f, {}));
    const double begin = seconds += 0.1;
    while (!governor.observe(seconds, 44.f, {})) seconds += 0.1;
    calm.push_back(seconds - begin);
    seconds += 0.1;
  }
  for (size_t i = 0; i < calm.size(); ++i) {
    EXPECT_NEAR(calm[i], std::min(std::ldexp(2.0, static_cast<int>(i)), 64.0), 0.2) << i;
  }
  // After a long calm it begins anew.
  seconds += 1000;
  ASSERT_TRUE(governor.observe(seconds, 46.f, {}));
  const double begin = seconds += 0.1;
  while (!governor.observe(seconds, 44.f, {})) seconds += 0.1;
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
      if (!governor.observe(seconds, celsius, {})) continue;
      if (governor.heat() < before) {
        EXPECT_EQ(static_cast<int>(governor.heat()), static_cast<int>(before) - 1);
        EXPECT_GE(seconds - calm_since, 2 - 1e-9);
      }
    }
  }
}

}  // namespace
}  // namespace sapwood
