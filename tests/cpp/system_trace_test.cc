// The system's own trace: it is told the events that the ring is told, and costs nothing where
// nobody records.
#include "trace/system_trace.h"

#include <dlfcn.h>
#include <fcntl.h>
#include <gtest/gtest.h>
#include <unistd.h>

#include <cstdlib>
#include <fstream>
#include <map>
#include <memory>
#include <sstream>
#include <string>
#include <vector>

#include "measure/allocation_counter.h"
#include "session_fixture.h"
#include "temporary_folder.h"
#include "trace/tracing.h"

namespace sapwood {
namespace {

const Text kPrompt = {1, 2, 3, 1, 2, 3, 1, 2};

GenerateOptions dynamic(int tokens) {
  GenerateOptions options;
  options.max_new_tokens = tokens;
  return options;
}

std::unique_ptr<Session> session_over(std::shared_ptr<SystemTrace> trace) {
  SessionOptions options;
  options.context_length = 512;
  options.max_tree_nodes = 15;
  options.cost_curve = cheap_rows();
  options.learn_costs = false;
  options.system_trace = std::move(trace);
  return Session::create(std::make_shared<FakeModel>(FakeModel::Options()), std::move(options))
      .value();
}

// What a system was told: "begin Target_Verify 3", "count rows 5", ...
struct Recorder final : SystemTrace {
  bool begin_step(int32_t step, int32_t) override {
    if (!enabled) return false;
    said.push_back("step " + std::to_string(step));
    return true;
  }
  void begin(TraceName name, int32_t cookie) override { say("begin", trace_name(name), cookie); }
  void end(TraceName name, int32_t cookie) override { say("end", trace_name(name), cookie); }
  void count(const char* name, int64_t value) override { say("count", name, value); }

  void say(const char* what, std::string_view name, int64_t number) {
    said.push_back(std::string(what) + ' ' + std::string(name) + ' ' + std::to_string(number));
  }

  bool enabled = true;
  std::vector<std::string> said;
};

TEST(SystemTrace, IsToldTheStagesAndCountersThatTheRingIsTold) {
  const auto recorder = std::make_shared<Recorder>();
  const std::unique_ptr<Session> session = session_over(recorder);
  const auto ring = std::make_shared<TraceRing>(1 << 14);
  session->record_into(ring);
  answer(*session, kPrompt, dynamic(60));
  session->observe({.celsius = 51.f});
  std::vector<std::string> expected;
  int32_t step = 0;
  expected.push_back("step 0");
  for (const TraceEvent& event : ring->snapshot()) {
    if (event.step != step) expected.push_back("step " + std::to_string(step = event.step));
    const std::string name(trace_name(event.name));
    const std::string number = ' ' + std::to_string(event.step);
    if (trace_kind(event.name) == TraceKind::kStage) {
      expected.push_back("begin " + name + number);
      if (event.name == TraceName::kTargetVerify) {
        expected.push_back("count rows " + std::to_string(event.rows));
      }
      expected.push_back("end " + name + number);
    } else {
      expected.push_back("count " + name + ' ' + std::to_string(static_cast<int>(event.value)));
    }
  }
  EXPECT_EQ(recorder->said, expected);
  EXPECT_GT(expected.size(), 100u);
  EXPECT_EQ(expected.back(), "count heat change 2");
}

TEST(SystemTrace, IsToldWithoutARingAndNothingWhileNobodyRecords) {
  const auto recorder = std::make_shared<Recorder>();
  const std::unique_ptr<Session> session = session_over(recorder);
  recorder->enabled = false;
  const Text quiet = answer(*session, kPrompt, dynamic(30));
  EXPECT_TRUE(recorder->said.empty());
  recorder->enabled = true;
  EXPECT_EQ(answer(*session, kPrompt, dynamic(30)), quiet);
  EXPECT_GT(recorder->said.size(), 30u);
}

TEST(SystemTrace, AStepThatFailsLeavesNoStageOpen) {
  const auto recorder = std::make_shared<Recorder>();
  const auto model = std::make_shared<FakeModel>(FakeModel::Options());
  SessionOptions options;
  options.context_length = 128;
  options.system_trace = recorder;
  const auto session = Session::create(model, std::move(options)).value();
  ASSERT_TRUE(session->start(kPrompt, dynamic(30)).ok());
  model->fail_pass = model->passes + 2;
  while (session->step().ok()) {
  }
  int open = 0;
  for (const std::string& line : recorder->said) {
    open += line.starts_with("begin ") ? 1 : line.starts_with("end ") ? -1 : 0;
    EXPECT_GE(open, 0);
    EXPECT_LE(open, 2) << "pruning inside drafting at most";
  }
  EXPECT_EQ(open, 0);
}

TEST(SystemTrace, SpansThatOthersRecordBeginAndEndThere) {
  const auto recorder = std::make_shared<Recorder>();
  const Tracing tracing{nullptr, recorder};
  {
    const TraceSpan outer(tracing, {.name = TraceName::kDraftGenerate, .step = 4});
    const TraceSpan inner(tracing, {.name = TraceName::kPruneController, .step = 4});
  }
  EXPECT_EQ(recorder->said,
            (std::vector<std::string>{"begin Draft_Generate 4", "begin Prune_Controller 4",
                                      "end Prune_Controller 4", "end Draft_Generate 4"}));
}

// ---- Android's functions, by a library that stands in for libandroid ----

std::vector<std::string> lines_of(const std::string& file) {
  std::ifstream in(file);
  std::vector<std::string> lines;
  for (std::string line; std::getline(in, line);) lines.push_back(line);
  return lines;
}

std::map<char, int> kinds_of(const std::vector<std::string>& lines) {
  std::map<char, int> kinds;
  for (const std::string& line : lines) ++kinds[line.at(0)];
  return kinds;
}

struct Told {
  explicit Told(const char* library) : file(temporary_folder() + "/told") {
    setenv("ATRACE_SHIM", file.c_str(), 1);
    functions = load_atrace(library);
  }
  ~Told() { unsetenv("ATRACE_SHIM"); }
  std::vector<std::string> lines() const { return lines_of(file); }

  std::string file;
  ATraceFunctions functions;
};

TEST(ATrace, StagesAreSectionsAndArgumentsCountersFromAndroid10On) {
  const Told told(SAPWOOD_ATRACE_10);
  ASSERT_TRUE(told.functions.usable()) << dlerror();
  ASSERT_TRUE(told.functions.has_async());
  const auto session = session_over(std::make_shared<ATrace>(told.functions));
  answer(*session, kPrompt, dynamic(24));
  const auto lines = told.lines();
  const auto kinds = kinds_of(lines);
  EXPECT_EQ(kinds.count('B'), 0u);
  EXPECT_GT(kinds.at('S'), 10);
  EXPECT_EQ(kinds.at('S'), kinds.at('F'));
  const std::vector<std::string> first(lines.begin(), lines.begin() + 9);
  EXPECT_EQ(first, (std::vector<std::string>{"C step 0", "C mode 3", "S Prefill 0", "F Prefill 0",
                                             "C step 1", "C mode 3", "S Draft_Generate 1",
                                             "F Draft_Generate 1", "S Sync_Draft2Target 1"}));
  unsetenv("ATRACE_SHIM");  // nobody records any more
  answer(*session, kPrompt, dynamic(24));
  EXPECT_EQ(told.lines().size(), lines.size());
}

TEST(ATrace, BeforeAndroid10StagesAreSectionsOfTheirThreadOneInAnother) {
  const Told told(SAPWOOD_ATRACE_6);
  ASSERT_TRUE(told.functions.usable()) << dlerror();
  EXPECT_FALSE(told.functions.has_async());
  answer(*session_over(std::make_shared<ATrace>(told.functions)), kPrompt, dynamic(24));
  auto kinds = kinds_of(told.lines());
  EXPECT_GT(kinds['B'], 10);
  EXPECT_EQ(kinds['B'], kinds['E']);
  EXPECT_EQ(kinds.size(), 2u) << "no counters";
}

TEST(ATrace, WhereThereIsNoAndroidThereIsNone) {
  EXPECT_FALSE(load_atrace("/no/such/library.so").usable());
  EXPECT_EQ(open_system_trace(), nullptr);
}

// ---- The kernel's marker file ----

// A marker whose file refuses to be written, as the kernel's does while nobody records.
struct Marker {
  Marker() : file(temporary_folder() + "/trace_marker") {
    write_text(file, "");
    descriptor = open(file.c_str(), O_RDONLY | O_CLOEXEC);
    trace = std::make_shared<TraceMarker>(descriptor);
  }
  void record() const {
    const int writes = open(file.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC);
    EXPECT_EQ(dup2(writes, descriptor), descriptor);
    close(writes);
  }
  std::vector<std::string> lines() const { return lines_of(file); }

  std::string file;
  int descriptor;
  std::shared_ptr<TraceMarker> trace;
};

TEST(TraceMarker, WritesALinePerEventAsATraceDoes) {
  const Marker marker;
  marker.record();
  const Text text = answer(*session_over(marker.trace), kPrompt, dynamic(24));
  EXPECT_EQ(text, answer(*session_over(nullptr), kPrompt, dynamic(24)));
  const auto lines = marker.lines();
  auto kinds = kinds_of(lines);
  EXPECT_GT(kinds['S'], 10);
  EXPECT_EQ(kinds['S'], kinds['F']);
  EXPECT_GT(kinds['C'], 10);
  const std::string process = std::to_string(getpid());
  EXPECT_EQ(lines[0], "C|" + process + "|step|0");
  EXPECT_EQ(lines[2], "S|" + process + "|Prefill|0");
  for (const std::string& line : lines) {
    std::istringstream fields(line);
    std::vector<std::string> parts;
    for (std::string part; std::getline(fields, part, '|');) parts.push_back(part);
    ASSERT_EQ(parts.size(), 4u) << line;
    EXPECT_EQ(parts[1], process);
    EXPECT_EQ(parts[3].find_first_not_of("0123456789"), std::string::npos) << line;
  }
}

TEST(TraceMarker, WhileNobodyRecordsItIsTriedNowAndThenAndTheRestCostsNothing) {
  const Marker marker;
  EXPECT_FALSE(marker.trace->begin_step(0, 0));
  marker.record();
  for (uint32_t step = 1; step < TraceMarker::kLooks; ++step) {
    EXPECT_FALSE(marker.trace->begin_step(static_cast<int32_t>(step), 0));
  }
  EXPECT_TRUE(marker.lines().empty());
  EXPECT_TRUE(marker.trace->begin_step(32, 1));
  EXPECT_TRUE(marker.trace->begin_step(33, 1));
  EXPECT_EQ(marker.lines().size(), 4u);
  const int refuses = open(marker.file.c_str(), O_RDONLY | O_CLOEXEC);
  ASSERT_EQ(dup2(refuses, marker.descriptor), marker.descriptor);
  close(refuses);
  EXPECT_FALSE(marker.trace->begin_step(34, 1)) << "the recording has ended";
}

TEST(TraceMarker, TheFileThatTheEnvironmentNamesIsTakenAnywhere) {
  const std::string file = temporary_folder() + "/marker";
  write_text(file, "");
  setenv("SAPWOOD_TRACE_MARKER", file.c_str(), 1);
  const std::shared_ptr<SystemTrace> opened = open_system_trace();
  unsetenv("SAPWOOD_TRACE_MARKER");
  ASSERT_NE(opened, nullptr);
  EXPECT_TRUE(opened->begin_step(7, 3));
  EXPECT_EQ(lines_of(file).size(), 2u);
}

TEST(TraceMarker, RecordingAllocatesNothing) {
  if (!counts_allocations()) GTEST_SKIP() << "a sanitizer brings its own allocator";
  const Marker marker;
  marker.record();
  const auto session = session_over(marker.trace);
  ASSERT_TRUE(session->start(kPrompt, dynamic(200)).ok());
  for (int i = 0; i < 3; ++i) ASSERT_TRUE(session->step().ok());
  const uint64_t before = allocations();
  while (session->stop_reason() == StopReason::kNone) ASSERT_TRUE(session->step().ok());
  EXPECT_EQ(allocations(), before);
}

}  // namespace
}  // namespace sapwood
