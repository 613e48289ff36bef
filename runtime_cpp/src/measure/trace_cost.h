// What recording costs by itself. The numbers of `sapwood bench trace`.
#pragma once

#include "base/status.h"

namespace sapwood {

// Nanoseconds, medians over the rounds.
struct TraceCost {
  double event = 0;  // into the ring
  double stage = 0;  // a span: two readings of the clock and an event
  double off = 0;    // a span where nobody records
};

Result<TraceCost> trace_cost(int rounds);

}  // namespace sapwood
