// The stages of a step as events: each ends where the next begins, so one reading of the clock a
// stage is all that recording costs beside the ring, and none where nobody records.
#pragma once

#include <memory>
#include <utility>

#include "engine/mode.h"
#include "engine/reason.h"
#include "trace/tracing.h"

namespace sapwood {

class StepTrace {
 public:
  // system: null where there is none.
  explicit StepTrace(std::shared_ptr<SystemTrace> system) : system_(std::move(system)) {}

  void record_into(std::shared_ptr<TraceRing> ring) { tracing_.ring = std::move(ring); }
  bool on() const { return tracing_.on(); }

  // For events that others record: where to, and the step's mode and number.
  const Tracing& tracing() const { return tracing_; }
  const TraceEvent& event() const { return event_; }

  // What follows belongs to this step.
  void begin(int step, Mode mode) {
    drop();
    const bool recorded =
        system_ != nullptr && system_->begin_step(step, static_cast<int32_t>(mode));
    tracing_.system = recorded ? system_ : nullptr;
    event_ = {.mode = static_cast<uint8_t>(mode), .step = step};
  }

  // A stage begins.
  void enter(TraceName name) {
    if (on()) open(name, Clock::now());
  }
  // It ends, over so many rows, and the next begins.
  void next(TraceName name, int rows, int accepted = 0) {
    if (!on()) return;
    const Clock::time_point now = Clock::now();
    close(now, rows, accepted);
    open(name, now);
  }
  // It ends.
  void leave(int rows) {
    if (on()) close(Clock::now(), rows, 0);
  }
  // It has come to nothing.
  void drop() {
    if (open_ && tracing_.system != nullptr) tracing_.system->end(event_.name, event_.step);
    open_ = false;
  }

  // A counter, or a change and why.
  void value(TraceName name, double value, Reason reason = Reason::kNone) {
    if (!on()) return;
    TraceEvent event = event_;
    event.name = name;
    event.reason = static_cast<uint8_t>(reason);
    trace_value(tracing_, event, static_cast<float>(value));
  }

 private:
  void open(TraceName name, Clock::time_point now) {
    open_ = true;
    event_.name = name;
    begin_ = now;
    if (tracing_.system != nullptr) tracing_.system->begin(name, event_.step);
  }

  void close(Clock::time_point now, int rows, int accepted) {
    if (!open_) return;
    if (tracing_.ring != nullptr) {
      TraceEvent event = event_;
      event.rows = rows;
      event.accepted = accepted;
      record_stage(*tracing_.ring, event, begin_, now);
    }
    if (tracing_.system != nullptr && event_.name == TraceName::kTargetVerify) {
      tracing_.system->count("rows", rows);
    }
    drop();
  }

  const std::shared_ptr<SystemTrace> system_;
  Tracing tracing_;
  TraceEvent event_;  // the stage that is open, or was last
  bool open_ = false;
  Clock::time_point begin_;
};

}  // namespace sapwood
