#include "trace/trace_ring.h"

#include <algorithm>
#include <bit>
#include <chrono>

namespace sapwood {
namespace {

struct About {
  std::string_view name;
  TraceKind kind;
  TraceTrack track;
};

constexpr std::array<About, kTraceNames> kAbout = {{
    {"Prefill", TraceKind::kStage, TraceTrack::kTarget},
    {"Draft_Generate", TraceKind::kStage, TraceTrack::kDraft},
    {"Prune_Controller", TraceKind::kStage, TraceTrack::kDraft},
    {"Sync_Draft2Target", TraceKind::kStage, TraceTrack::kTarget},
    {"Target_Verify", TraceKind::kStage, TraceTrack::kTarget},
    {"Accept_Reject_Sample", TraceKind::kStage, TraceTrack::kTarget},
    {"Learn", TraceKind::kStage, TraceTrack::kDraft},
    {"tree size", TraceKind::kCounter, TraceTrack::kEngine},
    {"accepted", TraceKind::kCounter, TraceTrack::kEngine},
    {"KV slots", TraceKind::kCounter, TraceTrack::kEngine},
    {"KV runs", TraceKind::kCounter, TraceTrack::kEngine},
    {"temperature", TraceKind::kCounter, TraceTrack::kEngine},
    {"heat change", TraceKind::kInstant, TraceTrack::kEngine},
    {"memory pressure change", TraceKind::kInstant, TraceTrack::kEngine},
    {"strategy change", TraceKind::kInstant, TraceTrack::kEngine},
    {"deadline missed", TraceKind::kInstant, TraceTrack::kEngine},
}};

const About& about(TraceName name) { return kAbout[static_cast<size_t>(name)]; }

}  // namespace

std::string_view trace_name(TraceName name) { return about(name).name; }
TraceKind trace_kind(TraceName name) { return about(name).kind; }
TraceTrack trace_track(TraceName name) { return about(name).track; }

std::string_view trace_track_name(TraceTrack track) {
  constexpr std::array<std::string_view, 3> kNames = {"engine", "draft", "target"};
  return kNames[static_cast<size_t>(track)];
}

TraceRing::TraceRing(int capacity)
    : mask_(std::bit_ceil(static_cast<uint64_t>(std::clamp(capacity, 1, kMostEvents))) - 1),
      slots_(new Slot[mask_ + 1]) {}

void TraceRing::record(const TraceEvent& event) {
  const auto low = [](int32_t number) {
    return static_cast<uint64_t>(static_cast<uint32_t>(number));
  };
  const std::array<uint64_t, kWords> words = {
      static_cast<uint64_t>(event.name) | static_cast<uint64_t>(event.mode) << 8 |
          static_cast<uint64_t>(event.reason) << 16 | low(event.step) << 32,
      low(event.rows) | low(event.accepted) << 32,
      static_cast<uint64_t>(std::bit_cast<uint32_t>(event.value)),
      static_cast<uint64_t>(event.begin_ns),
      static_cast<uint64_t>(event.duration_ns),
  };
  const uint64_t index = next_.fetch_add(1, std::memory_order_relaxed);
  Slot& slot = slots_[index & mask_];
  if (slot.number.exchange(kBusy, std::memory_order_acquire) == kBusy) return;
  // Every word is released: a reader that sees a new one also sees that the slot is not whole.
  for (size_t i = 0; i < kWords; ++i) slot.words[i].store(words[i], std::memory_order_release);
  slot.number.store(index, std::memory_order_release);
}

std::vector<TraceEvent> TraceRing::snapshot() const {
  const uint64_t end = next_.load(std::memory_order_acquire);
  const uint64_t first = end > mask_ + 1 ? end - (mask_ + 1) : 0;
  std::vector<TraceEvent> events;
  events.reserve(end - first);
  for (uint64_t index = first; index < end; ++index) {
    const Slot& slot = slots_[index & mask_];
    if (slot.number.load(std::memory_order_acquire) != index) continue;
    std::array<uint64_t, kWords> words;
    for (size_t i = 0; i < kWords; ++i) words[i] = slot.words[i].load(std::memory_order_acquire);
    if (slot.number.load(std::memory_order_relaxed) != index) continue;
    events.push_back(
        {static_cast<TraceName>(words[0] & 0xff), static_cast<uint8_t>(words[0] >> 8 & 0xff),
         static_cast<int32_t>(words[0] >> 32), static_cast<int32_t>(words[1]),
         static_cast<int32_t>(words[1] >> 32),
         std::bit_cast<float>(static_cast<uint32_t>(words[2])), static_cast<int64_t>(words[3]),
         static_cast<int64_t>(words[4]), static_cast<uint8_t>(words[0] >> 16 & 0xff)});
  }
  return events;
}

void TraceRing::clear() {
  for (uint64_t i = 0; i <= mask_; ++i) slots_[i].number.store(kEmpty, std::memory_order_relaxed);
  next_.store(0, std::memory_order_release);
}

int64_t nanoseconds(Clock::time_point time) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(time.time_since_epoch()).count();
}

void record_stage(TraceRing& ring, TraceEvent event, Clock::time_point begin,
                  Clock::time_point end) {
  event.begin_ns = nanoseconds(begin);
  event.duration_ns = nanoseconds(end) - event.begin_ns;
  ring.record(event);
}

}  // namespace sapwood
