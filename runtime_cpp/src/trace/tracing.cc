#include "trace/tracing.h"

#include <cmath>

namespace sapwood {

void TraceSpan::begin() {
  if (!tracing_->on()) {
    tracing_ = nullptr;
    return;
  }
  if (tracing_->system != nullptr) tracing_->system->begin(event_.name, event_.step);
  begin_ = Clock::now();
}

void TraceSpan::end() {
  if (tracing_ == nullptr) return;
  if (tracing_->ring != nullptr) record_stage(*tracing_->ring, event_, begin_, Clock::now());
  if (tracing_->system != nullptr) tracing_->system->end(event_.name, event_.step);
  tracing_ = nullptr;
}

void trace_value(const Tracing& tracing, TraceEvent event, float value) {
  event.value = value;
  if (tracing.ring != nullptr) {
    event.begin_ns = nanoseconds(Clock::now());
    tracing.ring->record(event);
  }
  if (tracing.system != nullptr) {
    tracing.system->count(trace_name(event.name).data(), std::llround(value));
  }
}

}  // namespace sapwood
