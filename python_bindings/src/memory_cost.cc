// What memory costs, for `sapwood bench memory`.

#include "measure/memory_cost.h"

#include <optional>
#include <string>

#include "bindings.h"
#include "engine/session.h"
#include "measure/allocation_counter.h"

namespace sapwood::python {

void bind_memory_cost(nb::module_& module) {
  using Unlocked = nb::call_guard<nb::gil_scoped_release>;
  nb::class_<Latency>(module, "Latency", "Of single calls, in nanoseconds.")
      .def_ro("p50", &Latency::p50)
      .def_ro("p99", &Latency::p99);
  nb::class_<SlotLatency>(module, "SlotLatency")
      .def_ro("allocate", &SlotLatency::allocate)
      .def_ro("free", &SlotLatency::free);
  nb::class_<HandleLatency>(module, "HandleLatency")
      .def_ro("allocate", &HandleLatency::allocate)
      .def_ro("free", &HandleLatency::free)
      .def_ro("acquire", &HandleLatency::acquire)
      .def_ro("release", &HandleLatency::release);
  module.def(
      "slot_latency",
      [](int slots, int count, int threads, int rounds) {
        return value_or_raise(slot_latency(slots, count, threads, rounds));
      },
      nb::kw_only(), nb::arg("slots"), nb::arg("count"), nb::arg("threads"), nb::arg("rounds"),
      Unlocked(), "`count` KV slots at a time of a bitmap that others hold a part of.");
  module.def(
      "handle_latency", [](int rounds) { return value_or_raise(handle_latency(rounds)); },
      nb::kw_only(), nb::arg("rounds"), Unlocked(),
      "A page of a pool taken and given back, a reference to it shared and let go.");
  module.def(
      "wake_latency",
      [](const std::string& waiter, int rounds) {
        const std::optional<Waiter> known = parse_waiter(waiter);
        if (!known.has_value()) {
          raise_unless_ok(
              Status(Code::kInvalidArgument, "waiter: must be spinning, patient, parked or futex"));
        }
        return value_or_raise(wake_latency(*known, rounds));
      },
      nb::kw_only(), nb::arg("waiter"), nb::arg("rounds"), Unlocked(),
      "From a signal to the thread that waits for it: \"spinning\" or \"parked\" for a host "
      "timeline, \"patient\", spinning for long, or asleep on a bare \"futex\".");
  module.def(
      "step_allocations",
      [](Session& session) {
        nb::gil_scoped_release unlocked;
        const uint64_t before = allocations();
        size_t tokens = 0;
        for (;;) {
          const size_t emitted = value_or_raise(session.step()).size();
          if (emitted == 0) break;
          tokens += emitted;
        }
        return std::pair(allocations() - before, tokens);
      },
      nb::arg("session"),
      "Steps to the answer's end: how often they called operator new, and how many tokens came. "
      "The GIL is released.");
}

}  // namespace sapwood::python
