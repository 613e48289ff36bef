// The C interface to what watches a session: the governor's sensors and the trace.
#include <cmath>
#include <utility>

#include "engine/c_api.h"

using sapwood::Code;
using sapwood::Status;
using sapwood::TraceEvent;
using sapwood::TraceName;
using sapwood::TraceRing;
using sapwood::c_api::guarded;
using sapwood::c_api::missing;

namespace sapwood::c_api {
namespace {

static_assert(static_cast<int>(Heat::kCritical) == SAPWOOD_CRITICAL);
static_assert(static_cast<int>(TraceKind::kInstant) == SAPWOOD_TRACE_INSTANT);

std::optional<float> reading(double value) {
  return std::isnan(value) ? std::nullopt : std::optional<float>(static_cast<float>(value));
}

sapwood_trace_event plain(const TraceEvent& event) {
  return {.name = static_cast<int32_t>(event.name),
          .mode = event.mode,
          .step = event.step,
          .rows = event.rows,
          .accepted = event.accepted,
          .value = event.value,
          .begin_ns = event.begin_ns,
          .duration_ns = event.duration_ns};
}

bool is_name(int32_t name) { return name >= 0 && name < kTraceNames; }

}  // namespace
}  // namespace sapwood::c_api

extern "C" {

sapwood_code sapwood_session_observe_heat(sapwood_session* session, double celsius, double watts) {
  return guarded([&] {
    if (session == nullptr) return missing("session");
    if (std::isinf(celsius) || std::isinf(watts) || watts < 0) {
      return Status(Code::kInvalidArgument,
                    "a reading must be finite, and watts 0 or above; NaN says there is no sensor");
    }
    session->session->observe_heat(sapwood::c_api::reading(celsius),
                                   sapwood::c_api::reading(watts));
    return Status::okay();
  });
}

sapwood_code sapwood_session_trace(sapwood_session* session, int32_t capacity) {
  return guarded([&] {
    if (session == nullptr) return missing("session");
    if (capacity < 0 || capacity > TraceRing::kMostEvents) {
      return Status(Code::kInvalidArgument, "capacity is " + std::to_string(capacity) +
                                                "; it must be from 0 to " +
                                                std::to_string(TraceRing::kMostEvents));
    }
    session->ring = capacity > 0 ? std::make_shared<TraceRing>(capacity) : nullptr;
    session->taken.clear();
    session->session->record_into(session->ring);
    return Status::okay();
  });
}

sapwood_code sapwood_session_take_trace(sapwood_session* session,
                                        const sapwood_trace_event** events, size_t* count,
                                        uint64_t* lost) {
  return guarded([&] {
    if (session == nullptr || events == nullptr || count == nullptr) {
      return missing("session, events or count");
    }
    *events = nullptr;
    *count = 0;
    if (lost != nullptr) *lost = 0;
    if (session->ring == nullptr) return Status::okay();
    // Another ring takes what follows: a drafter's thread may be recording into this one.
    const auto full =
        std::exchange(session->ring, std::make_shared<TraceRing>(session->ring->capacity()));
    session->session->record_into(session->ring);
    session->taken.clear();
    for (const TraceEvent& event : full->snapshot()) {
      session->taken.push_back(sapwood::c_api::plain(event));
    }
    *events = session->taken.data();
    *count = session->taken.size();
    if (lost != nullptr) *lost = full->recorded() - session->taken.size();
    return Status::okay();
  });
}

const char* sapwood_heat_name(int32_t heat) {
  if (heat < SAPWOOD_COOL || heat > SAPWOOD_CRITICAL) return "unknown";
  return sapwood::heat_name(static_cast<sapwood::Heat>(heat)).data();
}

int32_t sapwood_trace_names(void) { return sapwood::kTraceNames; }

const char* sapwood_trace_event_name(int32_t name) {
  return sapwood::c_api::is_name(name) ? sapwood::trace_name(static_cast<TraceName>(name)).data()
                                       : "unknown";
}

int32_t sapwood_trace_event_kind(int32_t name) {
  return sapwood::c_api::is_name(name)
             ? static_cast<int32_t>(sapwood::trace_kind(static_cast<TraceName>(name)))
             : -1;
}

const char* sapwood_trace_event_track(int32_t name) {
  if (!sapwood::c_api::is_name(name)) return "unknown";
  return sapwood::trace_track_name(sapwood::trace_track(static_cast<TraceName>(name))).data();
}

}  // extern "C"
