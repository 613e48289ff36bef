#include "trace/perfetto_trace.h"

#include <time.h>
#include <unistd.h>

#include <algorithm>
#include <map>
#include <tuple>
#include <vector>

#include "base/protobuf_message.h"

namespace sapwood {
namespace {

// Field numbers of perfetto's protos/perfetto/trace, by message.
constexpr int kTracePacket = 1;
namespace packet {
constexpr int kClockSnapshot = 6, kTimestamp = 8, kSequenceId = 10, kTrackEvent = 11,
              kSequenceFlags = 13, kDefaults = 59, kTrackDescriptor = 60;
constexpr int kStateCleared = 1;  // of kSequenceFlags
}  // namespace packet
namespace defaults {
constexpr int kTimestampClock = 58;
}
namespace clock_snapshot {
constexpr int kClock = 1, kPrimaryClock = 2;
constexpr int kId = 1, kTimestamp = 2;        // of kClock
constexpr int kMonotonic = 3, kBoottime = 6;  // of kId
}  // namespace clock_snapshot
namespace track {
constexpr int kUuid = 1, kName = 2, kProcess = 3, kParent = 5, kCounter = 8;
constexpr int kPid = 1, kProcessName = 6;  // of kProcess
}  // namespace track
namespace track_event {
constexpr int kAnnotation = 4, kType = 9, kTrack = 11, kName = 23, kCounterValue = 44, kFlow = 47,
              kTerminatingFlow = 48;
enum Type { kBegin = 1, kEnd = 2, kInstant = 3, kCounter = 4 };
}  // namespace track_event
namespace annotation {
constexpr int kInteger = 4, kReal = 5, kText = 6, kName = 10;
}

constexpr int kSequence = 1;
constexpr int kProcessTrack = 1;  // others follow

int64_t now_ns(clockid_t clock) {
  timespec now = {};
  clock_gettime(clock, &now);
  return int64_t{now.tv_sec} * 1'000'000'000 + now.tv_nsec;
}

int64_t end_of(const TraceEvent& event) { return event.begin_ns + event.duration_ns; }

class Writer {
 public:
  explicit Writer(const TraceWords& words) : words_(words) { preamble(); }

  const std::string& bytes() const { return trace_.bytes(); }

  void open_track(const std::string& name, bool counter = false) {
    if (tracks_.contains(name)) return;
    const int uuid = kProcessTrack + 1 + static_cast<int>(tracks_.size());
    tracks_[name] = uuid;
    ProtobufMessage described;
    described.number(track::kUuid, uuid)
        .number(track::kParent, kProcessTrack)
        .text(track::kName, name);
    if (counter) described.message(track::kCounter, {});
    add(ProtobufMessage().message(packet::kTrackDescriptor, described));
  }

  // flow_field: 0 where no arrow begins or ends here.
  void begin(const TraceEvent& event, const std::string& on, int flow_field, int flow) {
    ProtobufMessage message = typed(track_event::kBegin, on);
    message.text(track_event::kName, trace_name(event.name));
    annotate(&message, "step", event.step);
    annotate(&message, "rows", event.rows);
    annotate(&message, "accepted", event.accepted);
    annotate(&message, "mode", words_.mode(event.mode));
    if (flow_field != 0) message.fixed64(flow_field, static_cast<uint64_t>(flow));
    add_event(event.begin_ns, message);
  }

  void end(const TraceEvent& event, const std::string& on) {
    add_event(end_of(event), typed(track_event::kEnd, on));
  }

  void count(const TraceEvent& event) {
    ProtobufMessage message = typed(track_event::kCounter, std::string(trace_name(event.name)));
    message.real(track_event::kCounterValue, static_cast<double>(event.value));
    add_event(event.begin_ns, message);
  }

  void instant(const TraceEvent& event) {
    ProtobufMessage message =
        typed(track_event::kInstant, std::string(trace_track_name(trace_track(event.name))));
    message.text(track_event::kName, trace_name(event.name));
    annotate(&message, "step", event.step);
    annotate(&message, "value", static_cast<double>(event.value));
    annotate(&message, "reason", words_.reason(event.reason));
    add_event(event.begin_ns, message);
  }

 private:
  void preamble() {
    ProtobufMessage clock;
    clock.number(defaults::kTimestampClock, clock_snapshot::kMonotonic);
    ProtobufMessage first;
    first.number(packet::kSequenceFlags, packet::kStateCleared).message(packet::kDefaults, clock);
    add(first);
    ProtobufMessage snapshot;
    snapshot.number(clock_snapshot::kPrimaryClock, clock_snapshot::kBoottime);
    for (const auto& [id, clock_id] : {std::pair(clock_snapshot::kMonotonic, CLOCK_MONOTONIC),
                                       std::pair(clock_snapshot::kBoottime, CLOCK_BOOTTIME)}) {
      ProtobufMessage reading;
      reading.number(clock_snapshot::kId, id).number(clock_snapshot::kTimestamp, now_ns(clock_id));
      snapshot.message(clock_snapshot::kClock, reading);
    }
    add(ProtobufMessage().message(packet::kClockSnapshot, snapshot));
    ProtobufMessage process;
    process.number(track::kPid, getpid()).text(track::kProcessName, "sapwood");
    ProtobufMessage described;
    described.number(track::kUuid, kProcessTrack)
        .text(track::kName, "sapwood")
        .message(track::kProcess, process);
    add(ProtobufMessage().message(packet::kTrackDescriptor, described));
  }

  ProtobufMessage typed(track_event::Type type, const std::string& on) const {
    ProtobufMessage message;
    message.number(track_event::kType, type).number(track_event::kTrack, tracks_.at(on));
    return message;
  }

  static void annotate(ProtobufMessage* message, std::string_view name, int32_t value) {
    message->message(track_event::kAnnotation, named(name).number(annotation::kInteger, value));
  }
  static void annotate(ProtobufMessage* message, std::string_view name, double value) {
    message->message(track_event::kAnnotation, named(name).real(annotation::kReal, value));
  }
  static void annotate(ProtobufMessage* message, std::string_view name, std::string_view value) {
    message->message(track_event::kAnnotation, named(name).text(annotation::kText, value));
  }
  static ProtobufMessage named(std::string_view name) {
    return ProtobufMessage().text(annotation::kName, name);
  }

  void add_event(int64_t moment, const ProtobufMessage& event) {
    ProtobufMessage made;
    made.number(packet::kTimestamp, moment).message(packet::kTrackEvent, event);
    add(made);
  }

  void add(ProtobufMessage made) {
    made.number(packet::kSequenceId, kSequence);
    trace_.message(kTracePacket, made);
  }

  const TraceWords words_;
  ProtobufMessage trace_;
  std::map<std::string, int> tracks_;
};

// A stage, the track it is drawn on, and the arrow that begins or ends there.
struct Placed {
  TraceEvent event;
  std::string track;
  int flow_field = 0;
  int flow = 0;
};

// Every stage on its own track, or on a lane beside it.
std::vector<Placed> place(std::span<const TraceEvent> events) {
  std::vector<Placed> placed;
  for (const TraceEvent& event : events) {
    if (trace_kind(event.name) == TraceKind::kStage) placed.push_back({event, "", 0, 0});
  }
  std::stable_sort(placed.begin(), placed.end(), [](const Placed& one, const Placed& other) {
    return std::pair(one.event.begin_ns, -one.event.duration_ns) <
           std::pair(other.event.begin_ns, -other.event.duration_ns);
  });
  std::map<TraceTrack, std::vector<std::vector<int64_t>>> lanes;  // ends of each lane's open stages
  for (Placed& stage : placed) {
    const TraceTrack own = trace_track(stage.event.name);
    std::vector<std::vector<int64_t>>& here = lanes[own];
    size_t fitting = here.size();
    for (size_t i = here.size(); i-- > 0;) {
      while (!here[i].empty() && here[i].back() <= stage.event.begin_ns) here[i].pop_back();
      if (here[i].empty() || end_of(stage.event) <= here[i].back()) fitting = i;
    }
    if (fitting == here.size()) here.emplace_back();
    here[fitting].push_back(end_of(stage.event));
    stage.track = trace_track_name(own);
    if (fitting > 0) stage.track += ' ' + std::to_string(fitting + 1);
  }
  return placed;
}

void add_flows(std::vector<Placed>* stages) {
  std::map<int32_t, size_t> drafts;  // by step, the latest draft
  for (size_t i = 0; i < stages->size(); ++i) {
    Placed& stage = (*stages)[i];
    if (stage.event.name == TraceName::kDraftGenerate) drafts[stage.event.step] = i;
    if (stage.event.name != TraceName::kTargetVerify) continue;
    const auto draft = drafts.find(stage.event.step);
    if (draft == drafts.end()) continue;
    Placed& drafted = (*stages)[draft->second];
    stage.flow = drafted.flow = static_cast<int>(draft->second) + 1;
    drafted.flow_field = track_event::kFlow;
    stage.flow_field = track_event::kTerminatingFlow;
    drafts.erase(draft);
  }
}

struct Moment {
  int64_t time;
  int order;       // of moments at one time: ends of stages before begins, others last
  int64_t within;  // then: ends of inner stages first, begins of outer ones
  const TraceEvent* event;
  const Placed* stage;  // null: a counter or an instant
  bool ends;
};

}  // namespace

std::string perfetto_trace(std::span<const TraceEvent> events, const TraceWords& words) {
  std::vector<Placed> stages = place(events);
  add_flows(&stages);
  Writer writer(words);
  std::vector<Moment> moments;
  for (const Placed& stage : stages) {
    const TraceEvent& event = stage.event;
    writer.open_track(stage.track);
    moments.push_back({event.begin_ns, 1, -event.duration_ns, &event, &stage, false});
    // A stage shorter than the clock's tick ends after it begins.
    const int after = event.duration_ns > 0 ? 0 : 2;
    moments.push_back({end_of(event), after, -event.begin_ns, &event, &stage, true});
  }
  for (const TraceEvent& event : events) {
    const TraceKind kind = trace_kind(event.name);
    if (kind == TraceKind::kStage) continue;
    const bool counter = kind == TraceKind::kCounter;
    writer.open_track(
        std::string(counter ? trace_name(event.name) : trace_track_name(trace_track(event.name))),
        counter);
    moments.push_back({event.begin_ns, 3, 0, &event, nullptr, false});
  }
  std::stable_sort(moments.begin(), moments.end(), [](const Moment& one, const Moment& other) {
    return std::tuple(one.time, one.order, one.within) <
           std::tuple(other.time, other.order, other.within);
  });
  for (const Moment& moment : moments) {
    if (moment.stage != nullptr && moment.ends) {
      writer.end(*moment.event, moment.stage->track);
    } else if (moment.stage != nullptr) {
      writer.begin(*moment.event, moment.stage->track, moment.stage->flow_field,
                   moment.stage->flow);
    } else if (trace_kind(moment.event->name) == TraceKind::kCounter) {
      writer.count(*moment.event);
    } else {
      writer.instant(*moment.event);
    }
  }
  return writer.bytes();
}

}  // namespace sapwood
