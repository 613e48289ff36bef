// The system's own trace, where the engine's stages lie beside what else the device does: ATrace on
// Android, which Perfetto and scripts/capture_trace record.
//
// A section there has a name and no arguments: a step's number, mode and rows are counters.
#pragma once

#include <atomic>
#include <cstdint>
#include <memory>

#include "trace/trace_ring.h"

namespace sapwood {

// From any thread.
class SystemTrace {
 public:
  virtual ~SystemTrace() = default;

  // A step begins: whether somebody records, who is then told of it. Next to nothing otherwise.
  virtual bool begin_step(int32_t step, int32_t mode) = 0;

  // A stage begins, or ends on the same thread. cookie: tells apart stages of one name that run
  // side by side; the end's is the begin's.
  virtual void begin(TraceName name, int32_t cookie) = 0;
  virtual void end(TraceName name, int32_t cookie) = 0;

  virtual void count(const char* name, int64_t value) = 0;  // of a counter, or since a change
};

// The NDK's functions (android/trace.h), null where this Android is too old for them.
struct ATraceFunctions {
  bool (*is_enabled)() = nullptr;  // these three: Android 6
  void (*begin_section)(const char* name) = nullptr;
  void (*end_section)() = nullptr;
  void (*begin_async_section)(const char* name, int32_t cookie) = nullptr;  // Android 10
  void (*end_async_section)(const char* name, int32_t cookie) = nullptr;
  void (*set_counter)(const char* name, int64_t value) = nullptr;

  bool usable() const { return is_enabled && begin_section && end_section; }
  bool has_async() const { return begin_async_section && end_async_section && set_counter; }
};
// Looked up at run time, so that one build serves every Android; unusable anywhere else.
ATraceFunctions load_atrace(const char* library = "libandroid.so");

// Before Android 10 sections of the thread that they are on, and no counters.
class ATrace final : public SystemTrace {
 public:
  explicit ATrace(const ATraceFunctions& functions) : functions_(functions) {}
  bool begin_step(int32_t step, int32_t mode) override;
  void begin(TraceName name, int32_t cookie) override;
  void end(TraceName name, int32_t cookie) override;
  void count(const char* name, int64_t value) override;

 private:
  const ATraceFunctions functions_;
};

// The file that ATrace itself writes to, for a static executable, which cannot load libandroid.
// The kernel refuses what is written while nobody records: then it is tried again every kLooks
// steps.
class TraceMarker final : public SystemTrace {
 public:
  static constexpr uint32_t kLooks = 32;

  explicit TraceMarker(int descriptor);  // which it closes
  ~TraceMarker() override;
  bool begin_step(int32_t step, int32_t mode) override;
  void begin(TraceName name, int32_t cookie) override;
  void end(TraceName name, int32_t cookie) override;
  void count(const char* name, int64_t value) override;

 private:
  template <typename... Arguments>
  void write_line(const char* format, Arguments... arguments);

  const int descriptor_;
  const int process_;
  std::atomic<bool> recorded_{false};  // the latest line was taken
  std::atomic<uint32_t> steps_{0};
};

// What this process has of these; null: nothing. ATrace in an Android app's process; the marker
// in an executable that runs under Android, or in the file that SAPWOOD_TRACE_MARKER names.
std::shared_ptr<SystemTrace> open_system_trace();
// Opened once.
const std::shared_ptr<SystemTrace>& system_trace();

}  // namespace sapwood
