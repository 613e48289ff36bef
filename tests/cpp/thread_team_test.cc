#include "base/thread_team.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <ctime>
#include <thread>
#include <vector>

namespace sapwood {
namespace {

class TeamOf : public ::testing::TestWithParam<int> {};

TEST_P(TeamOf, RunsEveryMemberOnceWithItsIndex) {
  ThreadTeam team(GetParam());
  ASSERT_EQ(GetParam(), team.size());
  for (int round = 0; round < 50; ++round) {
    std::vector<int> seen(team.size(), 0);  // each member writes its own
    team.run([&](int thread) { ++seen[thread]; });
    EXPECT_EQ(std::vector<int>(team.size(), 1), seen);
  }
}

TEST_P(TeamOf, PassesABarrierOnlyTogether) {
  constexpr int kRounds = 100;
  ThreadTeam team(GetParam());
  std::atomic<int> arrived{0};
  std::atomic<int> early{0};
  team.run([&](int) {
    for (int round = 1; round <= kRounds; ++round) {
      arrived.fetch_add(1);
      team.barrier();
      if (arrived.load() < round * team.size()) early.fetch_add(1);
      team.barrier();  // before anyone counts the next round
    }
  });
  EXPECT_EQ(0, early.load());
  EXPECT_EQ(kRounds * team.size(), arrived.load());
}

TEST_P(TeamOf, SeesAfterABarrierWhatOthersWroteBeforeIt) {
  ThreadTeam team(GetParam());
  std::vector<int> written(team.size(), 0);
  std::atomic<int> wrong{0};
  team.run([&](int thread) {
    for (int round = 1; round <= 100; ++round) {
      written[thread] = round;
      team.barrier();
      if (written[(thread + 1) % team.size()] != round) wrong.fetch_add(1);
      team.barrier();
    }
  });
  EXPECT_EQ(0, wrong.load());
}

TEST_P(TeamOf, SharesItemsInOrderWithoutGapsAndEvenly) {
  ThreadTeam team(GetParam());
  for (const int items : {0, 1, 2, 7, 64, 49152}) {
    int next = 0;
    for (int thread = 0; thread < team.size(); ++thread) {
      const auto [begin, end] = team.share(items, thread);
      EXPECT_EQ(next, begin);
      EXPECT_GE(end - begin, items / team.size());
      EXPECT_LE(end - begin, items / team.size() + 1);
      next = end;
    }
    EXPECT_EQ(items, next);
  }
}

TEST_P(TeamOf, WakesAfterItHasFallenAsleep) {
  ThreadTeam team(GetParam());
  std::atomic<int> runs{0};
  for (int round = 0; round < 3; ++round) {
    team.run([&](int) { runs.fetch_add(1); });
    std::this_thread::sleep_for(std::chrono::milliseconds(20));
  }
  EXPECT_EQ(3 * team.size(), runs.load());
}

// Processor time of the whole process, so a member that spun on would show, however busy the
// machine is with others.
TEST_P(TeamOf, BurnsNothingWhileIdle) {
  ThreadTeam team(GetParam());
  team.run([](int) {});
  std::this_thread::sleep_for(std::chrono::milliseconds(100));  // spins end here
  const std::clock_t before = std::clock();
  std::this_thread::sleep_for(std::chrono::milliseconds(200));
  const double burnt = static_cast<double>(std::clock() - before) / CLOCKS_PER_SEC;
  EXPECT_LT(burnt, 0.1);
}

INSTANTIATE_TEST_SUITE_P(Threads, TeamOf, ::testing::Values(1, 2, 3, 8));

}  // namespace
}  // namespace sapwood
