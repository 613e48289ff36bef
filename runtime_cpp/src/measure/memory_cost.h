// What sharing memory and taking turns costs: KV slots, handles of a pool, timelines. The numbers
// of `sapwood bench memory`.
#pragma once

#include "base/status.h"

namespace sapwood {

// Of single calls, nanoseconds, without the clock's own time.
struct Latency {
  double p50 = 0;
  double p99 = 0;
};

// Of `count` KV slots at a time of a bitmap of `slots`, a quarter of which one text holds in one
// piece and others an eighth here and there; by so many threads at once, each `rounds` times.
struct SlotLatency {
  Latency allocate;
  Latency free;
};
Result<SlotLatency> slot_latency(int slots, int count, int threads, int rounds);

// Of a pool's handles: a page taken from the pool and given back, and a reference to it shared and
// let go.
struct HandleLatency {
  Latency allocate;
  Latency free;
  Latency acquire;
  Latency release;
};
Result<HandleLatency> handle_latency(int rounds);

// From just before a host timeline is signalled to when the thread that waits for it goes on: one
// that sleeps (parked), or one that came a microsecond ago and still spins.
Result<Latency> wake_latency(bool parked, int rounds);

}  // namespace sapwood
