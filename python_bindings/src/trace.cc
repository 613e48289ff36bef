// TraceRing: what the runtime did and when, as numpy arrays.

#include "bindings.h"
#include "engine/mode.h"
#include "engine/reason.h"
#include "measure/trace_cost.h"
#include "trace/perfetto_trace.h"
#include "trace/trace_ring.h"

namespace sapwood::python {
namespace {

template <typename T, typename Field>
NumpyArray<T, 1> column(const std::vector<TraceEvent>& events, Field field) {
  NumpyArray<T, 1> array = new_array<T>(events.size());
  for (size_t i = 0; i < events.size(); ++i) array.data()[i] = static_cast<T>(field(events[i]));
  return array;
}

nb::dict events_of(const TraceRing& ring) {
  const std::vector<TraceEvent> events = ring.snapshot();
  nb::dict columns;
  columns["name"] = column<int32_t>(events, [](const TraceEvent& e) { return e.name; });
  columns["mode"] = column<int32_t>(events, [](const TraceEvent& e) { return e.mode; });
  columns["step"] = column<int32_t>(events, [](const TraceEvent& e) { return e.step; });
  columns["rows"] = column<int32_t>(events, [](const TraceEvent& e) { return e.rows; });
  columns["accepted"] = column<int32_t>(events, [](const TraceEvent& e) { return e.accepted; });
  columns["value"] = column<float>(events, [](const TraceEvent& e) { return e.value; });
  columns["reason"] = column<int32_t>(events, [](const TraceEvent& e) { return e.reason; });
  columns["begin_ns"] = column<int64_t>(events, [](const TraceEvent& e) { return e.begin_ns; });
  columns["duration_ns"] =
      column<int64_t>(events, [](const TraceEvent& e) { return e.duration_ns; });
  return columns;
}

nb::bytes perfetto_bytes(const TraceRing& ring) {
  constexpr TraceWords kWords = {[](int mode) { return mode_name(static_cast<Mode>(mode)); },
                                 [](int why) { return reason_name(static_cast<Reason>(why)); }};
  const std::string bytes = perfetto_trace(ring.snapshot(), kWords);
  return nb::bytes(bytes.data(), bytes.size());
}

const char* kind_name(TraceKind kind) {
  switch (kind) {
    case TraceKind::kStage:
      return "stage";
    case TraceKind::kCounter:
      return "counter";
    case TraceKind::kInstant:
      return "instant";
  }
  return "instant";
}

}  // namespace

void bind_trace(nb::module_& module) {
  nb::class_<TraceRing>(module, "TraceRing",
                        "The latest events of the runtime: stages, counters, changes. Sessions "
                        "record into it; it never holds text.")
      .def(
          "__init__",
          [](TraceRing* self, int capacity) {
            if (capacity < 1 || capacity > TraceRing::kMostEvents) {
              raise_invalid("capacity must be from 1 to " + std::to_string(TraceRing::kMostEvents));
            }
            new (self) TraceRing(capacity);
          },
          nb::arg("capacity") = 1 << 16)
      .def_prop_ro("capacity", &TraceRing::capacity)
      .def_prop_ro("recorded", &TraceRing::recorded, "Events so far, with those overwritten since.")
      .def(
          "record",
          [](TraceRing& self, int name, int step, int rows, int accepted, float value, int mode,
             int64_t begin_ns, int64_t duration_ns, int reason) {
            if (name < 0 || name >= kTraceNames) {
              raise_invalid("name must be from 0 to " + std::to_string(kTraceNames - 1));
            }
            if (reason < 0 || reason >= kReasons) {
              raise_invalid("reason must be from 0 to " + std::to_string(kReasons - 1));
            }
            self.record({static_cast<TraceName>(name), static_cast<uint8_t>(mode), step, rows,
                         accepted, value, begin_ns, duration_ns, static_cast<uint8_t>(reason)});
          },
          nb::arg("name"), nb::kw_only(), nb::arg("step") = 0, nb::arg("rows") = 0,
          nb::arg("accepted") = 0, nb::arg("value") = 0.f, nb::arg("mode") = 0,
          nb::arg("begin_ns") = 0, nb::arg("duration_ns") = 0, nb::arg("reason") = 0)
      .def("events", &events_of, nb::sig("def events(self) -> dict[str, NDArray[numpy.generic]]"),
           "What is there, the oldest first: arrays of one length by field, `name` an index into "
           "trace_names().")
      .def("perfetto_trace", &perfetto_bytes, "What is there, as a Perfetto trace file's bytes.")
      .def("clear", &TraceRing::clear, "Nobody may be recording.");
  nb::class_<TraceCost>(module, "TraceCost", "Nanoseconds, medians.")
      .def_ro("event", &TraceCost::event, "Into the ring.")
      .def_ro("stage", &TraceCost::stage, "A span: two readings of the clock and an event.")
      .def_ro("off", &TraceCost::off, "A span where nobody records.");
  module.def(
      "trace_cost", [](int rounds) { return value_or_raise(trace_cost(rounds)); }, nb::kw_only(),
      nb::arg("rounds"), nb::call_guard<nb::gil_scoped_release>(),
      "What recording costs by itself.");
  module.def(
      "reason_names",
      [] {
        std::vector<std::string> names;
        for (int i = 0; i < kReasons; ++i) names.emplace_back(reason_name(static_cast<Reason>(i)));
        return names;
      },
      "Why something changed, in words, by the number in an event's `reason`.");
  module.def(
      "trace_names",
      [] {
        std::vector<std::tuple<std::string, std::string, std::string>> names;
        for (int i = 0; i < kTraceNames; ++i) {
          const TraceName name = static_cast<TraceName>(i);
          names.emplace_back(trace_name(name), kind_name(trace_kind(name)),
                             trace_track_name(trace_track(name)));
        }
        return names;
      },
      "Of every event: its name, its kind (stage, counter or instant) and its track.");
}

}  // namespace sapwood::python
