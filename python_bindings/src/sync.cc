// Timelines.

#include "bindings.h"
#include "sync/timeline.h"

namespace sapwood::python {
namespace {

Deadline deadline_of(std::optional<double> timeout) {
  if (!timeout) return kNoDeadline;
  if (!(*timeout >= 0 && *timeout <= 1e6)) {
    raise_invalid("timeout must be from 0 to 1,000,000 seconds");
  }
  return std::chrono::steady_clock::now() + std::chrono::duration_cast<std::chrono::nanoseconds>(
                                                std::chrono::duration<double>(*timeout));
}

const char* wait_name(Wait outcome) {
  switch (outcome) {
    case Wait::kReached:
      return "reached";
    case Wait::kMissed:
      return "missed";
    case Wait::kAbandoned:
      break;
  }
  return "abandoned";
}

}  // namespace

void bind_sync(nb::module_& module) {
  nb::class_<Timeline>(
      module, "Timeline",
      "A number that only rises, which stages wait for and raise: how they take turns.")
      .def_prop_ro("value", &Timeline::value)
      .def(
          "wait",
          [](Timeline& self, uint64_t value, std::optional<double> timeout) {
            const Deadline deadline = deadline_of(timeout);
            nb::gil_scoped_release release;
            return std::string(wait_name(self.wait(value, deadline)));
          },
          nb::arg("value"), nb::arg("timeout") = nb::none(),
          "\"reached\", \"missed\" after `timeout` seconds, or \"abandoned\".")
      .def(
          "signal", [](Timeline& self, uint64_t value) { raise_unless_ok(self.signal(value)); },
          nb::arg("value"), "Raises the value and wakes whom it concerns.")
      .def("abandon", &Timeline::abandon, "Wakes everyone who waits for more, for ever.");
  nb::class_<HostTimeline, Timeline>(module, "HostTimeline", "The processor's, on a futex.")
      .def(nb::init<uint64_t>(), nb::arg("value") = 0);
}

}  // namespace sapwood::python
