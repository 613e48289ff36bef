// The stages of a step as events: each ends where the next begins, so one reading of the clock a
// stage is all that recording costs beside the ring, and none where nobody records.
#pragma once

#include <memory>
#include <utility>

#include "engine/mode.h"
#include "engine/reason.h"
#include "trace/trace_ring.h"

namespace sapwood {

class StepTrace {
 public:
  void record_into(std::shared_ptr<TraceRing> ring) { ring_ = std::move(ring); }
  bool on() const { return ring_ != nullptr; }
  const std::shared_ptr<TraceRing>& ring() const { return ring_; }

  // What follows belongs to this step; its first stage begins here.
  void begin(int step, Mode mode) {
    if (!on()) return;
    event_ = {.mode = static_cast<uint8_t>(mode), .step = step};
    begin_ = Clock::now();
  }

  // The step's mode and number, for events that others record.
  const TraceEvent& event() const { return event_; }

  // This stage ends here and the next begins.
  void stage(TraceName name, int rows, int accepted = 0) {
    if (!on()) return;
    const Clock::time_point now = Clock::now();
    TraceEvent event = event_;
    event.name = name;
    event.rows = rows;
    event.accepted = accepted;
    record_stage(*ring_, event, begin_, now);
    begin_ = now;
  }

  // A counter, or a change and why.
  void value(TraceName name, double value, Reason reason = Reason::kNone) {
    if (!on()) return;
    TraceEvent event = event_;
    event.name = name;
    event.reason = static_cast<uint8_t>(reason);
    trace_value(ring_.get(), event, static_cast<float>(value));
  }

 private:
  std::shared_ptr<TraceRing> ring_;
  TraceEvent event_;
  Clock::time_point begin_;
};

}  // namespace sapwood
