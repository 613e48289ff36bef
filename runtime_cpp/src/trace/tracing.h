// Recording: what happens goes into a ring, the system's trace, both or none, as the same events.
#pragma once

#include <memory>

#include "base/clock.h"
#include "trace/system_trace.h"
#include "trace/trace_ring.h"

namespace sapwood {

struct Tracing {
  std::shared_ptr<TraceRing> ring;      // null: nobody asked for one
  std::shared_ptr<SystemTrace> system;  // null: nobody records there, as of this step's beginning
  bool on() const { return ring != nullptr || system != nullptr; }
};

// A stage from here to the end of the scope. Where nobody records it does nothing, the clock
// included.
class TraceSpan {
 public:
  // tracing: outlives it.
  TraceSpan(const Tracing& tracing, const TraceEvent& event) : tracing_(&tracing), event_(event) {
    begin();
  }
  ~TraceSpan() { end(); }
  TraceSpan(const TraceSpan&) = delete;
  TraceSpan& operator=(const TraceSpan&) = delete;

  TraceEvent& event() { return event_; }  // rows and accepted may be filled in until the end
  void end();

 private:
  void begin();

  const Tracing* tracing_;  // null: it has ended
  TraceEvent event_;
  Clock::time_point begin_;
};

// A counter's value, or what something is since a change, now.
void trace_value(const Tracing& tracing, TraceEvent event, float value);

}  // namespace sapwood
