// What sharing memory and taking turns costs: KV slots, handles of a pool, timelines. The numbers
// of `sapwood bench memory`.
#pragma once

#include <optional>
#include <string_view>

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

enum class Waiter {
  kSpinning,  // for a host timeline, since a microsecond
  kPatient,   // since a millisecond, spinning all the while, as a thread with a core to itself may
  kParked,    // since a millisecond, and sleeps
  kFutex,     // sleeps likewise, on a bare futex: what the machine itself takes to wake a thread
};
std::optional<Waiter> parse_waiter(std::string_view name);  // "spinning", "patient", ...

// From just before what a thread waits for is signalled to when it goes on, on another core if
// there is one.
Result<Latency> wake_latency(Waiter waiter, int rounds);

}  // namespace sapwood
