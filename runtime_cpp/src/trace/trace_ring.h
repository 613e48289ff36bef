// What the runtime did and when: a ring of events of fixed size, written without locks.
//
// Any thread records; the oldest events make room. A snapshot may be taken at any time, also while
// others record: it holds what was whole and still there. Nothing in an event comes from a prompt
// or an answer: counts, times and names of stages only.
#pragma once

#include <array>
#include <atomic>
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "base/clock.h"

namespace sapwood {

enum class TraceName : uint8_t {
  // Stages of an answer and of its steps.
  kPrefill,
  kDraftGenerate,
  kPruneController,
  kSyncDraftToTarget,
  kTargetVerify,
  kAcceptRejectSample,
  kLearn,
  // Counters.
  kTreeSize,
  kAccepted,
  kKvSlots,
  kKvRuns,  // stretches of slots that lie together, which the text is in
  kTemperature,
  // Something changed: value is what it is now, reason why.
  kHeatChange,
  kMemoryChange,
  kStrategyChange,
  kDeadlineMissed,
};
inline constexpr int kTraceNames = 16;

enum class TraceKind : uint8_t { kStage, kCounter, kInstant };

// Draft and target have tracks of their own: they may run side by side.
enum class TraceTrack : uint8_t { kEngine, kDraft, kTarget };

std::string_view trace_name(TraceName name);  // as the trace shows it: "Draft_Generate", ...
TraceKind trace_kind(TraceName name);         // a name is always of one kind
TraceTrack trace_track(TraceName name);       // and on one track
std::string_view trace_track_name(TraceTrack track);

struct TraceEvent {
  TraceName name = TraceName::kPrefill;
  uint8_t mode = 0;      // the engine's, as a number (engine/mode.h)
  int32_t step = 0;      // of the answer, from 1; 0: before the first
  int32_t rows = 0;      // of the pass, or nodes of the tree
  int32_t accepted = 0;  // nodes that the target agreed with
  float value = 0;       // of a counter
  int64_t begin_ns = 0;  // of Clock, since its own epoch
  int64_t duration_ns = 0;
  uint8_t reason = 0;  // of a change, as a number (engine/reason.h)
};

class TraceRing {
 public:
  static constexpr int kMostEvents = 1 << 22;

  // capacity: rounded up to a power of two, at most kMostEvents.
  explicit TraceRing(int capacity);

  int capacity() const { return static_cast<int>(mask_ + 1); }
  uint64_t recorded() const { return next_.load(std::memory_order_relaxed); }

  // From any thread. Wait-free; no allocation, no system call. Left out where the ring has gone
  // round while another thread was in the middle of recording into the same slot.
  void record(const TraceEvent& event);

  // What is there, the oldest first. Events that were being written or overwritten meanwhile are
  // left out.
  std::vector<TraceEvent> snapshot() const;
  // Nobody may be recording.
  void clear();

 private:
  static constexpr int kWords = 5;
  // A slot is whole when its number, the event's index, is the same before and after reading.
  static constexpr uint64_t kEmpty = ~uint64_t{0};
  static constexpr uint64_t kBusy = kEmpty - 1;
  struct Slot {
    std::atomic<uint64_t> number{kEmpty};
    std::array<std::atomic<uint64_t>, kWords> words{};
  };

  const uint64_t mask_;
  const std::unique_ptr<Slot[]> slots_;
  std::atomic<uint64_t> next_{0};
};

// A stage between two times.
void record_stage(TraceRing& ring, TraceEvent event, Clock::time_point begin,
                  Clock::time_point end);

int64_t nanoseconds(Clock::time_point time);  // as events have them

}  // namespace sapwood
