// The C interface to what watches a session: the governor's sensors and the trace.
#include <cmath>
#include <cstddef>
#include <limits>
#include <utility>

#include "base/write_file.h"
#include "engine/c_api.h"
#include "trace/perfetto_trace.h"

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
static_assert(static_cast<int>(MemoryPressure::kCritical) == SAPWOOD_MEMORY_CRITICAL);
static_assert(static_cast<int>(Reason::kRecovered) == SAPWOOD_REASON_RECOVERED);
static_assert(static_cast<int>(Reason::kDeadline) == SAPWOOD_REASON_DEADLINE);
static_assert(static_cast<int>(Strategy::kPlain) == SAPWOOD_STRATEGY_PLAIN);
static_assert(static_cast<int>(TraceKind::kInstant) == SAPWOOD_TRACE_INSTANT);

std::optional<float> reading(double value) {
  return std::isnan(value) ? std::nullopt : std::optional<float>(static_cast<float>(value));
}

std::optional<int> reading(int32_t value) {
  return value < 0 ? std::nullopt : std::optional<int>(value);
}

Status read_readings(const sapwood_readings* given, DeviceReadings* read) {
  sapwood_readings readings;
  sapwood_readings_init(&readings, sizeof(readings));
  SAPWOOD_TRY(read_options(
      given, offsetof(sapwood_readings, trim_level) + sizeof(readings.trim_level), readings));
  if (std::isnan(readings.watts)) {
    readings.watts = std::abs(readings.battery_amperes * readings.battery_volts);
  }
  if (std::isinf(readings.celsius) || std::isinf(readings.watts) || readings.watts < 0) {
    return Status(Code::kInvalidArgument,
                  "a reading must be finite, and watts 0 or above; NaN says there is no sensor");
  }
  if (!(readings.watts_budget >= 0)) {
    return Status(Code::kInvalidArgument, "watts_budget must be 0 or above");
  }
  if (readings.memory_used < 0 || readings.memory_used > 1) {
    return Status(Code::kInvalidArgument,
                  "memory_used is a share, from 0 to 1; NaN says that it is not known");
  }
  *read = {.celsius = reading(readings.celsius),
           .watts = reading(readings.watts),
           .watts_budget = static_cast<float>(readings.watts_budget),
           .thermal_status = reading(readings.thermal_status),
           .memory_used = reading(readings.memory_used),
           .trim_level = reading(readings.trim_level)};
  return Status::okay();
}

sapwood_trace_event plain(const TraceEvent& event) {
  return {.name = static_cast<int32_t>(event.name),
          .mode = event.mode,
          .step = event.step,
          .rows = event.rows,
          .accepted = event.accepted,
          .value = event.value,
          .begin_ns = event.begin_ns,
          .duration_ns = event.duration_ns,
          .reason = event.reason};
}

bool is_name(int32_t name) { return name >= 0 && name < kTraceNames; }

// What was recorded; another ring takes what follows: a drafter's thread may be recording into this
// one.
std::vector<TraceEvent> take(sapwood_session* session, uint64_t* lost) {
  const auto full =
      std::exchange(session->ring, std::make_shared<TraceRing>(session->ring->capacity()));
  session->session->record_into(session->ring);
  std::vector<TraceEvent> events = full->snapshot();
  if (lost != nullptr) *lost = full->recorded() - events.size();
  return events;
}

}  // namespace
}  // namespace sapwood::c_api

extern "C" {

void sapwood_readings_init(sapwood_readings* readings, size_t size) {
  constexpr double kNone = std::numeric_limits<double>::quiet_NaN();
  sapwood::c_api::write_defaults(
      readings, size,
      {.size = size,
       .celsius = kNone,
       .watts = kNone,
       .battery_amperes = kNone,
       .battery_volts = kNone,
       .watts_budget = static_cast<double>(sapwood::DeviceReadings().watts_budget),
       .memory_used = kNone,
       .thermal_status = -1,
       .trim_level = -1});
}

sapwood_code sapwood_session_observe(sapwood_session* session, const sapwood_readings* readings) {
  return guarded([&] {
    if (session == nullptr || readings == nullptr) return missing("session or readings");
    sapwood::DeviceReadings read;
    SAPWOOD_TRY(sapwood::c_api::read_readings(readings, &read));
    session->session->observe(read);
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
    session->taken.clear();
    for (const TraceEvent& event : sapwood::c_api::take(session, lost)) {
      session->taken.push_back(sapwood::c_api::plain(event));
    }
    *events = session->taken.data();
    *count = session->taken.size();
    return Status::okay();
  });
}

sapwood_code sapwood_session_save_trace(sapwood_session* session, const char* file, size_t* count,
                                        uint64_t* lost) {
  return guarded([&] {
    if (session == nullptr || file == nullptr) return missing("session or file");
    if (session->ring == nullptr) {
      return Status(Code::kInvalidArgument,
                    "nothing is being recorded; begin with sapwood_session_trace");
    }
    const std::vector<TraceEvent> events = sapwood::c_api::take(session, lost);
    if (count != nullptr) *count = events.size();
    constexpr sapwood::TraceWords kWords = {
        [](int mode) { return std::string_view(sapwood_mode_name(mode)); },
        [](int reason) { return std::string_view(sapwood_reason_name(reason)); }};
    return sapwood::write_file(file, sapwood::perfetto_trace(events, kWords));
  });
}

const char* sapwood_heat_name(int32_t heat) {
  if (heat < SAPWOOD_COOL || heat > SAPWOOD_CRITICAL) return "unknown";
  return sapwood::heat_name(static_cast<sapwood::Heat>(heat)).data();
}

const char* sapwood_memory_pressure_name(int32_t pressure) {
  if (pressure < SAPWOOD_MEMORY_ENOUGH || pressure > SAPWOOD_MEMORY_CRITICAL) return "unknown";
  return sapwood::memory_pressure_name(static_cast<sapwood::MemoryPressure>(pressure)).data();
}

const char* sapwood_strategy_name(int32_t strategy) {
  if (strategy < 0 || strategy >= sapwood::kStrategies) return "unknown";
  return sapwood::strategy_name(static_cast<sapwood::Strategy>(strategy)).data();
}

const char* sapwood_reason_name(int32_t reason) {
  if (reason < 0 || reason >= sapwood::kReasons) return "unknown";
  return sapwood::reason_name(static_cast<sapwood::Reason>(reason)).data();
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
