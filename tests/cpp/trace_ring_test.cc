// The ring of events: whole, in order, the latest kept, whoever else records.
#include "trace/trace_ring.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <memory>
#include <set>
#include <thread>
#include <vector>

#include "measure/allocation_counter.h"
#include "trace/tracing.h"

namespace sapwood {
namespace {

// All fields follow from a number, so that a torn event shows.
TraceEvent event_of(int32_t number) {
  return {static_cast<TraceName>(number % kTraceNames),
          static_cast<uint8_t>(number % 4),
          number,
          -number,
          number ^ 0x55,
          static_cast<float>(number) / 4,
          int64_t{number} << 20,
          -int64_t{number},
          static_cast<uint8_t>(number % 251)};
}

void expect_whole(const TraceEvent& event) {
  const TraceEvent expected = event_of(event.step);
  EXPECT_EQ(event.name, expected.name);
  EXPECT_EQ(event.mode, expected.mode);
  EXPECT_EQ(event.rows, expected.rows);
  EXPECT_EQ(event.accepted, expected.accepted);
  EXPECT_EQ(event.value, expected.value);
  EXPECT_EQ(event.begin_ns, expected.begin_ns);
  EXPECT_EQ(event.duration_ns, expected.duration_ns);
  EXPECT_EQ(event.reason, expected.reason);
}

TEST(TraceRing, KeepsTheLatestEventsInOrder) {
  TraceRing ring(100);
  EXPECT_EQ(ring.capacity(), 128);
  EXPECT_TRUE(ring.snapshot().empty());
  for (int32_t number = 0; number < 1000; ++number) {
    ring.record(event_of(number));
    const std::vector<TraceEvent> events = ring.snapshot();
    ASSERT_EQ(events.size(), static_cast<size_t>(std::min(number + 1, 128)));
    EXPECT_EQ(events.back().step, number);
    EXPECT_EQ(events.front().step, std::max(0, number - 127));
  }
  for (const TraceEvent& event : ring.snapshot()) expect_whole(event);
  EXPECT_EQ(ring.recorded(), 1000u);
  ring.clear();
  EXPECT_TRUE(ring.snapshot().empty());
}

TEST(TraceRing, WritersAndReadersNeverSeeATornEvent) {
  TraceRing ring(64);
  constexpr int kWriters = 3, kEvents = 4000;
  std::atomic<int> running{kWriters};
  std::vector<std::thread> writers;
  for (int writer = 0; writer < kWriters; ++writer) {
    writers.emplace_back([&, writer] {
      for (int32_t i = 0; i < kEvents; ++i) ring.record(event_of(i * kWriters + writer));
      running.fetch_sub(1);
    });
  }
  while (running.load() > 0) {
    for (const TraceEvent& event : ring.snapshot()) expect_whole(event);
  }
  for (std::thread& writer : writers) writer.join();
  EXPECT_EQ(ring.recorded(), static_cast<uint64_t>(kWriters * kEvents));
  std::set<int32_t> numbers;
  for (const TraceEvent& event : ring.snapshot()) {
    expect_whole(event);
    numbers.insert(event.step);
  }
  EXPECT_GT(numbers.size(), 32u);  // a few may have been left out
}

TEST(TraceSpan, RecordsOnceWhenItsScopeEndsAndNothingWithoutARing) {
  const auto ring_of_16 = std::make_shared<TraceRing>(16);
  const Tracing on{ring_of_16, nullptr};
  const TraceRing& ring = *ring_of_16;
  const Clock::time_point before = Clock::now();
  {
    TraceSpan span(on, {.name = TraceName::kTargetVerify, .mode = 3, .step = 7});
    span.event().rows = 5;
    EXPECT_TRUE(ring.snapshot().empty());
    span.end();
  }
  trace_value(on, {.name = TraceName::kKvSlots, .step = 7}, 42.f);
  const std::vector<TraceEvent> events = ring.snapshot();
  ASSERT_EQ(events.size(), 2u);
  EXPECT_EQ(events[0].rows, 5);
  EXPECT_GE(events[0].begin_ns, before.time_since_epoch().count());
  EXPECT_GE(events[0].duration_ns, 0);
  EXPECT_EQ(events[1].value, 42.f);
  EXPECT_GE(events[1].begin_ns, events[0].begin_ns + events[0].duration_ns);
  {
    const Tracing nowhere;
    TraceSpan off(nowhere, {});
    trace_value(nowhere, {}, 1.f);
  }
  EXPECT_EQ(ring.recorded(), 2u);
}

TEST(TraceRing, RecordsWithoutAllocating) {
  if (!counts_allocations()) GTEST_SKIP() << "a sanitizer has an allocator of its own";
  const Tracing on{std::make_shared<TraceRing>(16), nullptr};
  const uint64_t before = allocations();
  for (int32_t i = 0; i < 100; ++i) {
    TraceSpan span(on, event_of(i));
    trace_value(on, event_of(i), 1.f);
  }
  EXPECT_EQ(allocations(), before);
}

TEST(TraceRing, EveryNameHasItsWords) {
  std::set<std::string_view> names;
  for (int name = 0; name < kTraceNames; ++name) {
    names.insert(trace_name(static_cast<TraceName>(name)));
    EXPECT_FALSE(trace_track_name(trace_track(static_cast<TraceName>(name))).empty());
  }
  EXPECT_EQ(names.size(), static_cast<size_t>(kTraceNames));
}

}  // namespace
}  // namespace sapwood
