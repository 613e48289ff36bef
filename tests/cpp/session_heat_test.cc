// A hot device speculates less, and says the same; what a session records of its steps.
#include <gtest/gtest.h>

#include <algorithm>
#include <map>
#include <memory>
#include <vector>

#include "measure/allocation_counter.h"
#include "session_fixture.h"

namespace sapwood {
namespace {

GenerateOptions dynamic(int tokens) {
  GenerateOptions options;
  options.mode = Mode::kDynamic;
  options.max_new_tokens = tokens;
  return options;
}

const Text kPrompt = {1, 2, 3, 1, 2, 3, 1, 2};

TEST(SessionHeat, TheTextIsTheSameAndDraftsAreSmallerOrNone) {
  Text expected;
  std::map<Heat, int64_t> drafted;
  for (const float celsius : {20.f, 47.f, 52.f, 60.f}) {
    SessionFixture fixture;
    fixture.session->observe({.celsius = celsius});
    const Text text = fixture.answer(kPrompt, dynamic(120));
    const SessionStats& stats = fixture.session->stats();
    drafted[stats.heat] = stats.drafted_tokens;
    if (stats.heat == Heat::kCool) expected = text;
    EXPECT_EQ(text, expected) << celsius;
    if (stats.heat == Heat::kHot) {
      EXPECT_LE(stats.peak_draft_slots, 8);
    }
  }
  ASSERT_EQ(drafted.size(), 4u);
  EXPECT_GT(drafted[Heat::kCool], 0);
  EXPECT_LE(drafted[Heat::kHot], drafted[Heat::kCool]);
  EXPECT_EQ(drafted[Heat::kCritical], 0);
}

TEST(SessionHeat, AFullMemoryMakesTreesNarrowerAndThenChainsWithTheSameText) {
  Text expected;
  std::vector<int64_t> drafted;
  for (const float used : {0.5f, 0.92f, 0.98f}) {
    SessionFixture fixture;
    fixture.session->observe({.memory_used = used});
    const Text text = fixture.answer(kPrompt, dynamic(120));
    if (expected.empty()) expected = text;
    EXPECT_EQ(text, expected) << used;
    const SessionStats& stats = fixture.session->stats();
    drafted.push_back(stats.drafted_tokens);
    if (used > 0.9f) {
      EXPECT_LE(stats.peak_draft_slots, 8);
    }
    if (used > 0.97f) {
      EXPECT_EQ(stats.memory_pressure, MemoryPressure::kCritical);
      const DraftTree& tree = fixture.session->last_tree();
      EXPECT_EQ(tree.size(), tree.max_depth()) << "a chain";
    }
  }
  EXPECT_GT(drafted[0], 0);
  EXPECT_LE(drafted[1], drafted[0]);
}

TEST(SessionHeat, ASessionThatHearsNoSensorStaysCool) {
  SessionFixture fixture;
  fixture.session->observe({});
  fixture.answer(kPrompt, dynamic(20));
  EXPECT_EQ(fixture.session->stats().heat, Heat::kCool);
}

TEST(SessionTrace, EveryStepRecordsItsStagesInOrderAndItsCounters) {
  SessionFixture fixture;
  const auto ring = std::make_shared<TraceRing>(1 << 14);
  fixture.session->record_into(ring);
  fixture.session->observe({.celsius = 46.f, .memory_used = 0.95f});
  fixture.answer(kPrompt, dynamic(60));
  const SessionStats stats = fixture.session->stats();
  std::map<TraceName, std::vector<TraceEvent>> events;
  int64_t now = 0;
  for (const TraceEvent& event : ring->snapshot()) {
    events[event.name].push_back(event);
    EXPECT_GE(event.begin_ns, now);
    if (trace_kind(event.name) == TraceKind::kStage && event.step > 0) now = event.begin_ns;
  }
  const size_t steps = static_cast<size_t>(stats.steps);
  ASSERT_EQ(events[TraceName::kTargetVerify].size(), steps);
  int64_t rows = 0, accepted = 0;
  for (size_t i = 0; i < steps; ++i) {
    const TraceEvent& verify = events[TraceName::kTargetVerify][i];
    const TraceEvent& sample = events[TraceName::kAcceptRejectSample][i];
    EXPECT_EQ(verify.step, static_cast<int32_t>(i) + 1);
    EXPECT_EQ(verify.mode, static_cast<uint8_t>(Mode::kDynamic));
    EXPECT_EQ(sample.begin_ns, verify.begin_ns + verify.duration_ns);
    rows += verify.rows;
    accepted += sample.accepted;
  }
  EXPECT_EQ(rows, stats.rows_verified);
  EXPECT_EQ(accepted, stats.accepted_tokens);
  for (const TraceName name : {TraceName::kDraftGenerate, TraceName::kSyncDraftToTarget,
                               TraceName::kLearn, TraceName::kTreeSize, TraceName::kKvSlots}) {
    EXPECT_EQ(events[name].size(), steps) << trace_name(name);
  }
  EXPECT_EQ(events[TraceName::kPrefill].size(), 1u);
  EXPECT_EQ(events[TraceName::kTemperature].size(), 1u);
  ASSERT_EQ(events[TraceName::kHeatChange].size(), 1u);
  EXPECT_EQ(events[TraceName::kHeatChange][0].value, static_cast<float>(Heat::kWarm));
  EXPECT_EQ(events[TraceName::kHeatChange][0].reason, static_cast<uint8_t>(Reason::kTemperature));
  ASSERT_EQ(events[TraceName::kMemoryChange].size(), 1u);
  EXPECT_EQ(events[TraceName::kMemoryChange][0].reason,
            static_cast<uint8_t>(Reason::kMemoryPressure));
  fixture.session->record_into(nullptr);
  const uint64_t recorded = ring->recorded();
  fixture.answer(kPrompt, dynamic(20));
  EXPECT_EQ(ring->recorded(), recorded);
}

TEST(SessionTrace, RecordingAllocatesNothing) {
  if (!counts_allocations()) GTEST_SKIP() << "a sanitizer brings its own allocator";
  SessionFixture fixture;
  fixture.session->record_into(std::make_shared<TraceRing>(1 << 12));
  ASSERT_TRUE(fixture.session->start(kPrompt, dynamic(200)).ok());
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(fixture.session->step().ok());
  const uint64_t before = allocations();
  while (fixture.session->stop_reason() == StopReason::kNone) {
    ASSERT_TRUE(fixture.session->step().ok());
  }
  EXPECT_EQ(allocations(), before);
}

}  // namespace
}  // namespace sapwood
