// A recording as a Perfetto trace, which ui.perfetto.dev and `sapwood trace explain` open.
//
// A trace is a list of packets of one sequence: clocks, tracks, then begins and ends of stages,
// counters and instants in time order (perfetto's track_event.proto has the terms). A stage that
// overlaps another of its track without lying inside it gets a lane beside it. From every draft an
// arrow leads to the pass that verified it.
#pragma once

#include <span>
#include <string>
#include <string_view>

#include "trace/trace_ring.h"

namespace sapwood {

// What the numbers in a TraceEvent are called, which higher floors know.
struct TraceWords {
  std::string_view (*mode)(int);
  std::string_view (*reason)(int);
};

// A whole trace file.
std::string perfetto_trace(std::span<const TraceEvent> events, const TraceWords& words);

}  // namespace sapwood
