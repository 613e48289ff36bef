#include "sync/timeline.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <limits>
#include <thread>
#include <vector>

#include "measure/allocation_counter.h"
#include "sync/step_graph.h"

namespace sapwood {
namespace {

using std::chrono::milliseconds;
using std::chrono::steady_clock;

// Far enough for a loaded machine; a test that reaches it has failed.
Deadline soon() { return steady_clock::now() + std::chrono::seconds(60); }

TEST(HostTimeline, AValueThatWasReachedIsNotWaitedFor) {
  HostTimeline timeline(5);
  EXPECT_EQ(timeline.value(), 5u);
  EXPECT_EQ(timeline.wait(5, Deadline::min()), Wait::kReached);
  EXPECT_EQ(timeline.wait(0, kNoDeadline), Wait::kReached);
  ASSERT_TRUE(timeline.signal(9).ok());
  EXPECT_EQ(timeline.wait(7, kNoDeadline), Wait::kReached);
}

TEST(HostTimeline, ValuesOnlyRise) {
  HostTimeline timeline(5);
  for (const uint64_t value : {uint64_t{0}, uint64_t{4}, uint64_t{5}}) {
    const Status status = timeline.signal(value);
    EXPECT_EQ(status.code(), Code::kInvalidArgument);
    EXPECT_NE(status.message().find("only rise"), std::string::npos);
    EXPECT_EQ(timeline.value(), 5u);
  }
  // Both halves of a value count.
  ASSERT_TRUE(timeline.signal(uint64_t{1} << 40).ok());
  EXPECT_EQ(timeline.wait((uint64_t{1} << 40) + 1, Deadline::min()), Wait::kMissed);
  EXPECT_FALSE(timeline.signal(6).ok());
  ASSERT_TRUE(timeline.signal(std::numeric_limits<uint64_t>::max()).ok());
}

TEST(HostTimeline, ASignalThatNeverComesMissesTheDeadlineAndNotBeforeIt) {
  HostTimeline timeline;
  for (const int wait_ms : {0, 1, 20}) {
    const Deadline deadline = steady_clock::now() + milliseconds(wait_ms);
    EXPECT_EQ(timeline.wait(1, deadline), Wait::kMissed);
    EXPECT_GE(steady_clock::now(), deadline);
  }
  EXPECT_EQ(timeline.wait(1, Deadline::min()), Wait::kMissed);
  EXPECT_EQ(timeline.value(), 0u);  // and nothing has happened to it
  ASSERT_TRUE(timeline.signal(1).ok());
  EXPECT_EQ(timeline.wait(1, Deadline::min()), Wait::kReached);
}

// What was written before a signal is read after the wait, without any other synchronisation: the
// thread sanitizer watches.
TEST(HostTimeline, CarriesPlainMemoryFromThreadToThread) {
  HostTimeline there, back;
  uint64_t parcel = 0;
  constexpr uint64_t kRounds = 3000;
  std::thread other([&] {
    for (uint64_t round = 1; round <= kRounds; ++round) {
      if (there.wait(round, soon()) != Wait::kReached) return;
      parcel = parcel * 2 + 1;
      if (round % 97 == 0) std::this_thread::sleep_for(milliseconds(1));  // the other one sleeps
      if (!back.signal(round).ok()) return;
    }
  });
  for (uint64_t round = 1; round <= kRounds; ++round) {
    parcel = round;
    ASSERT_TRUE(there.signal(round).ok());
    ASSERT_EQ(back.wait(round, soon()), Wait::kReached);
    ASSERT_EQ(parcel, round * 2 + 1);
  }
  other.join();
}

TEST(HostTimeline, EveryWaiterWakesAtItsOwnValueAndNoneBefore) {
  HostTimeline timeline;
  std::atomic<int> early{0};
  std::atomic<int> reached{0};
  std::vector<std::thread> waiters;
  for (uint64_t value = 1; value <= 8; ++value) {
    waiters.emplace_back([&, value] {
      if (timeline.wait(value, soon()) == Wait::kReached) ++reached;
      if (timeline.value() < value) ++early;
    });
  }
  for (const uint64_t value : {1, 2, 5, 8}) {
    std::this_thread::sleep_for(milliseconds(2));  // most of them sleep by now
    ASSERT_TRUE(timeline.signal(value).ok());
  }
  for (std::thread& waiter : waiters) waiter.join();
  EXPECT_EQ(reached.load(), 8);
  EXPECT_EQ(early.load(), 0);
}

TEST(HostTimeline, RacingSignalsOfOneValueSucceedOnce) {
  for (int round = 0; round < 100; ++round) {
    HostTimeline timeline;
    std::atomic<int> succeeded{0};
    std::vector<std::thread> threads;
    for (int t = 0; t < 4; ++t) {
      threads.emplace_back([&] { succeeded += timeline.signal(3).ok() ? 1 : 0; });
    }
    for (std::thread& thread : threads) thread.join();
    ASSERT_EQ(succeeded.load(), 1);
  }
}

TEST(HostTimeline, AbandoningWakesEveryoneWhoWouldWaitForEver) {
  HostTimeline timeline;
  ASSERT_TRUE(timeline.signal(3).ok());
  std::atomic<int> abandoned{0};
  std::vector<std::thread> waiters;
  for (int t = 0; t < 4; ++t) {
    waiters.emplace_back([&, t] {
      if (timeline.wait(static_cast<uint64_t>(4 + t), kNoDeadline) == Wait::kAbandoned) ++abandoned;
    });
  }
  std::this_thread::sleep_for(milliseconds(5));
  timeline.abandon();
  timeline.abandon();
  for (std::thread& waiter : waiters) waiter.join();
  EXPECT_EQ(abandoned.load(), 4);
  EXPECT_EQ(timeline.wait(4, kNoDeadline), Wait::kAbandoned);
  EXPECT_EQ(timeline.wait(3, kNoDeadline), Wait::kReached);  // that was done
  EXPECT_EQ(timeline.signal(4).code(), Code::kCancelled);
  EXPECT_EQ(timeline.value(), 3u);
}

TEST(HostTimeline, AllocatesNothing) {
  if (!counts_allocations()) GTEST_SKIP() << "a sanitizer brings its own allocator";
  HostTimeline timeline;
  const uint64_t before = allocations();
  for (uint64_t value = 1; value <= 100; ++value) {
    ASSERT_TRUE(timeline.signal(value).ok());
    ASSERT_EQ(timeline.wait(value, kNoDeadline), Wait::kReached);
  }
  ASSERT_EQ(timeline.wait(101, steady_clock::now() + milliseconds(1)), Wait::kMissed);
  EXPECT_EQ(allocations() - before, 0u);
}

// ---- the graph ----------------------------------------------------------------------------------

struct Timelines {
  HostTimeline drafted, verified, sampled;
  explicit Timelines(uint64_t at = 0) : drafted(at), verified(at), sampled(at) {}
};

class StepGraphWith : public ::testing::TestWithParam<int> {};
INSTANTIATE_TEST_SUITE_P(Buffers, StepGraphWith, ::testing::Values(1, 2, 3),
                         ::testing::PrintToStringParamName());

// Three threads, one a stage, pass trees through as many plain buffers as the graph allows: each
// stage finds what the one before left, and a buffer is never written while somebody reads it.
TEST_P(StepGraphWith, EveryStepGoesThroughEveryStageOnceAndInOrder) {
  const int buffers = GetParam();
  constexpr uint64_t kBefore = 7;
  constexpr uint64_t kLast = kBefore + 1500;
  Timelines times(kBefore);
  const StepGraph graph =
      StepGraph::create(times.drafted, times.verified, times.sampled, buffers).value();
  EXPECT_EQ(graph.first_step(), kBefore + 1);
  std::vector<uint64_t> buffer(static_cast<size_t>(buffers), 0);
  std::atomic<int> wrong{0};
  const auto run = [&](Stage stage, auto&& work) {
    return std::thread([&graph, &wrong, stage, work] {
      for (uint64_t step = graph.first_step(); step <= kLast; ++step) {
        if (graph.begin(stage, step, soon()) != Wait::kReached) {
          ++wrong;
          return graph.abandon();
        }
        work(step);
        if (!graph.end(stage, step).ok()) ++wrong;
      }
    });
  };
  const auto at = [&](uint64_t step) -> uint64_t& { return buffer[step % buffer.size()]; };
  std::vector<uint64_t> emitted;
  std::thread draft = run(Stage::kDraft, [&](uint64_t step) { at(step) = 3 * step; });
  std::thread target = run(Stage::kTarget, [&](uint64_t step) { at(step) += 1; });
  std::thread sampler = run(Stage::kSampler, [&](uint64_t step) { emitted.push_back(at(step)); });
  for (std::thread* thread : {&draft, &target, &sampler}) thread->join();
  EXPECT_EQ(wrong.load(), 0);
  ASSERT_EQ(emitted.size(), kLast - kBefore);
  for (size_t i = 0; i < emitted.size(); ++i) ASSERT_EQ(emitted[i], 3 * (kBefore + 1 + i) + 1);
  EXPECT_EQ(graph.steps_done(), kLast - kBefore);
}

TEST_P(StepGraphWith, TheDraftRunsAheadByTheBuffersAndNoFurther) {
  const uint64_t buffers = static_cast<uint64_t>(GetParam());
  Timelines times;
  const StepGraph graph =
      StepGraph::create(times.drafted, times.verified, times.sampled, GetParam()).value();
  for (uint64_t step = 1; step <= buffers; ++step) {
    ASSERT_EQ(graph.begin(Stage::kDraft, step, Deadline::min()), Wait::kReached);
    ASSERT_TRUE(graph.end(Stage::kDraft, step).ok());
  }
  EXPECT_EQ(graph.begin(Stage::kDraft, buffers + 1, Deadline::min()), Wait::kMissed);
  EXPECT_EQ(graph.begin(Stage::kSampler, 1, Deadline::min()), Wait::kMissed);
  ASSERT_EQ(graph.begin(Stage::kTarget, 1, Deadline::min()), Wait::kReached);
  ASSERT_TRUE(graph.end(Stage::kTarget, 1).ok());
  EXPECT_EQ(graph.begin(Stage::kDraft, buffers + 1, Deadline::min()), Wait::kMissed);
  ASSERT_EQ(graph.begin(Stage::kSampler, 1, Deadline::min()), Wait::kReached);
  ASSERT_TRUE(graph.end(Stage::kSampler, 1).ok());
  EXPECT_EQ(graph.begin(Stage::kDraft, buffers + 1, Deadline::min()), Wait::kReached);
  EXPECT_FALSE(graph.end(Stage::kTarget, 1).ok());  // a step is done once
}

// A target that hangs: the sampler's deadline passes, the graph is abandoned, every thread ends,
// and a new graph goes on behind the last step that was sampled. Nothing is lost or emitted twice.
TEST_P(StepGraphWith, AStageThatHangsIsNoticedAndTheRestGoesOnInANewGraph) {
  constexpr uint64_t kHangsAt = 40;
  constexpr uint64_t kLast = 100;
  std::vector<uint64_t> emitted;
  bool hang = true;
  int graphs = 0;
  for (uint64_t done = 0; done < kLast; ++graphs) {
    ASSERT_LT(graphs, 2);
    Timelines times(done);
    const StepGraph graph =
        StepGraph::create(times.drafted, times.verified, times.sampled, GetParam()).value();
    const auto stage = [&graph](Stage which, auto&& work) {
      return std::thread([&graph, which, work] {
        for (uint64_t step = graph.first_step(); step <= kLast; ++step) {
          if (graph.begin(which, step, kNoDeadline) != Wait::kReached) return;
          if (!work(step) || !graph.end(which, step).ok()) return;
        }
      });
    };
    std::thread draft = stage(Stage::kDraft, [](uint64_t) { return true; });
    std::thread target =
        stage(Stage::kTarget, [&](uint64_t step) { return !(hang && step == kHangsAt); });
    for (uint64_t step = graph.first_step(); step <= kLast; ++step) {
      // Only the step that hangs has a deadline that it can miss.
      const bool doomed = hang && step == kHangsAt;
      const Deadline deadline = doomed ? steady_clock::now() + milliseconds(20) : soon();
      const Wait outcome = graph.begin(Stage::kSampler, step, deadline);
      if (outcome != Wait::kReached) {
        EXPECT_EQ(outcome, Wait::kMissed);
        EXPECT_TRUE(doomed);
        graph.abandon();
        break;
      }
      emitted.push_back(step);
      ASSERT_TRUE(graph.end(Stage::kSampler, step).ok());
    }
    draft.join();
    target.join();
    done = times.sampled.value();
    hang = false;
  }
  EXPECT_EQ(graphs, 2);
  ASSERT_EQ(emitted.size(), kLast);
  for (size_t i = 0; i < emitted.size(); ++i) ASSERT_EQ(emitted[i], i + 1);
}

TEST(StepGraph, TimelinesThatDisagreeAreRefused) {
  HostTimeline drafted(4), verified(3), sampled(3);
  const Status status = StepGraph::create(drafted, verified, sampled, 1).status();
  EXPECT_EQ(status.code(), Code::kInvalidArgument);
  EXPECT_NE(status.message().find("4, 3 and 3"), std::string::npos) << status.message();
  ASSERT_TRUE(verified.signal(4).ok());
  ASSERT_TRUE(sampled.signal(4).ok());
  EXPECT_TRUE(StepGraph::create(drafted, verified, sampled, 1).ok());
  EXPECT_FALSE(StepGraph::create(drafted, verified, sampled, 0).ok());
}

}  // namespace
}  // namespace sapwood
