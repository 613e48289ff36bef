"""Events to and from a Perfetto trace.

A trace is a list of packets of one sequence: clocks, tracks, then begins and ends of stages,
counters and instants in time order (perfetto/trace/track_event/track_event.proto has the terms). A
stage that overlaps another of its track without lying inside it gets a lane beside it. From every
draft an arrow leads to the pass that verified it.
"""

from __future__ import annotations

import os
import time
from collections.abc import Iterable, Sequence
from typing import Any

from sapwood.errors import SapwoodError
from sapwood.trace.events import ARGUMENTS, CHANGE_ARGUMENTS, COUNTER, INSTANT, STAGE, Event

DRAFT, VERIFY = "Draft_Generate", "Target_Verify"

_SEQUENCE = 1
_MONOTONIC, _BOOTTIME = 3, 6  # perfetto/common/builtin_clock.proto
_PROCESS = 1  # the track of the process; others follow


def perfetto_messages() -> Any:
    """PyPI perfetto's message classes; one line about what is missing without them."""
    try:
        from perfetto.protos.perfetto.trace import perfetto_trace_pb2
    except ImportError:
        raise SapwoodError(
            "traces need the package perfetto; pip install 'sapwood[trace]'"
        ) from None
    return perfetto_trace_pb2


def to_perfetto(events: Sequence[Event]) -> bytes:
    """A trace file's bytes."""
    messages = perfetto_messages()
    trace = messages.Trace()
    writer = _Writer(messages, trace)
    writer.preamble()
    lanes = _lanes([event for event in events if event.kind == STAGE])
    for track in dict.fromkeys(track for _, track in lanes):
        writer.track(track)
    for name in dict.fromkeys(event.name for event in events if event.kind == COUNTER):
        writer.counter_track(name)
    flows = _flows(event for event, _ in lanes)
    moments: list[tuple[int, int, int, Any]] = []
    for number, (event, track) in enumerate(lanes):
        # Of moments at the same time: ends of inner stages, of outer ones, begins of outer ones.
        begin = (event.begin, 1, -event.duration, (writer.begin, event, track, flows.get(number)))
        moments.append(begin)
        # A stage shorter than the clock's tick ends after it begins.
        after = 0 if event.duration else 2
        moments.append((event.end, after, -event.begin, (writer.end, event, track)))
    for event in events:
        if event.kind == COUNTER:
            moments.append((event.begin, 3, 0, (writer.count, event)))
        elif event.kind != STAGE:
            moments.append((event.begin, 3, 0, (writer.instant, event)))
    for *_, (write, *arguments) in sorted(moments, key=lambda moment: moment[:3]):
        write(*arguments)
    return bytes(trace.SerializeToString())


def from_perfetto(data: bytes) -> list[Event]:
    """The events of a trace that ``to_perfetto`` wrote, by the time they began."""
    messages = perfetto_messages()
    trace = messages.Trace()
    try:
        trace.ParseFromString(data)
    except Exception:
        raise SapwoodError("not a Perfetto trace, or a damaged one") from None
    names: dict[int, str] = {}
    open_stages: dict[int, list[Event]] = {}
    events: list[Event] = []
    for packet in trace.packet:
        if packet.HasField("track_descriptor"):
            names[packet.track_descriptor.uuid] = packet.track_descriptor.name
        if not packet.HasField("track_event"):
            continue
        event, track = packet.track_event, packet.track_event.track_uuid
        name = names.get(track, "")
        if event.type == event.TYPE_SLICE_BEGIN:
            given = {item.name: item for item in event.debug_annotations}
            open_stages.setdefault(track, []).append(
                Event(
                    event.name,
                    STAGE,
                    name.split(" ")[0],
                    packet.timestamp,
                    step=given["step"].int_value if "step" in given else 0,
                    rows=given["rows"].int_value if "rows" in given else 0,
                    accepted=given["accepted"].int_value if "accepted" in given else 0,
                    mode=given["mode"].string_value if "mode" in given else "",
                )
            )
        elif event.type == event.TYPE_SLICE_END and open_stages.get(track):
            stage = open_stages[track].pop()
            duration = packet.timestamp - stage.begin
            events.append(Event(**{**vars(stage), "duration": duration}))
        elif event.type == event.TYPE_COUNTER:
            value = event.double_counter_value
            events.append(Event(name, COUNTER, "engine", packet.timestamp, value=value))
        elif event.type == event.TYPE_INSTANT:
            given = {item.name: item for item in event.debug_annotations}
            events.append(
                Event(
                    event.name,
                    INSTANT,
                    name,
                    packet.timestamp,
                    value=given["value"].double_value if "value" in given else 0.0,
                    step=given["step"].int_value if "step" in given else 0,
                    reason=given["reason"].string_value if "reason" in given else "",
                )
            )
    return sorted(events, key=lambda event: (event.begin, -event.duration))


class _Writer:
    def __init__(self, messages: Any, trace: Any) -> None:
        self._messages, self._trace = messages, trace
        self._tracks: dict[str, int] = {}

    def preamble(self) -> None:
        packet = self._packet()
        packet.sequence_flags = packet.SEQ_INCREMENTAL_STATE_CLEARED
        packet.trace_packet_defaults.timestamp_clock_id = _MONOTONIC
        packet = self._packet()
        packet.clock_snapshot.primary_trace_clock = _BOOTTIME
        for clock, now in (
            (_MONOTONIC, time.monotonic_ns()),
            (_BOOTTIME, time.clock_gettime_ns(time.CLOCK_BOOTTIME)),
        ):
            snapshot = packet.clock_snapshot.clocks.add()
            snapshot.clock_id, snapshot.timestamp = clock, now
        packet = self._packet()
        packet.track_descriptor.uuid = _PROCESS
        packet.track_descriptor.name = "sapwood"
        packet.track_descriptor.process.pid = os.getpid()
        packet.track_descriptor.process.process_name = "sapwood"

    def track(self, name: str) -> Any:
        packet = self._packet()
        packet.track_descriptor.uuid = self._tracks[name] = _PROCESS + 1 + len(self._tracks)
        packet.track_descriptor.parent_uuid = _PROCESS
        packet.track_descriptor.name = name
        return packet.track_descriptor

    def counter_track(self, name: str) -> None:
        self.track(name).counter.SetInParent()

    def begin(self, event: Event, track: str, flow: tuple[str, int] | None) -> None:
        message = self._event(event.begin, track, "TYPE_SLICE_BEGIN")
        message.name = event.name
        _annotate(message, event, ARGUMENTS)
        if flow is not None:
            getattr(message, flow[0]).append(flow[1])

    def end(self, event: Event, track: str) -> None:
        self._event(event.end, track, "TYPE_SLICE_END")

    def count(self, event: Event) -> None:
        message = self._event(event.begin, event.name, "TYPE_COUNTER")
        message.double_counter_value = event.value

    def instant(self, event: Event) -> None:
        if event.track not in self._tracks:
            self.track(event.track)
        message = self._event(event.begin, event.track, "TYPE_INSTANT")
        message.name = event.name
        _annotate(message, event, CHANGE_ARGUMENTS)

    def _event(self, moment: int, track: str, kind: str) -> Any:
        packet = self._packet()
        packet.timestamp = moment
        message = packet.track_event
        message.type = getattr(message, kind)
        message.track_uuid = self._tracks[track]
        return message

    def _packet(self) -> Any:
        packet = self._trace.packet.add()
        packet.trusted_packet_sequence_id = _SEQUENCE
        return packet


def _annotate(message: Any, event: Event, arguments: Iterable[str]) -> None:
    for argument in arguments:
        annotation = message.debug_annotations.add()
        annotation.name = argument
        value = getattr(event, argument)
        if isinstance(value, str):
            annotation.string_value = value
        elif isinstance(value, float):
            annotation.double_value = value
        else:
            annotation.int_value = value


def _lanes(stages: list[Event]) -> list[tuple[Event, str]]:
    """Every stage with the track it is drawn on: its own, or a lane beside it."""
    lanes: dict[str, list[list[int]]] = {}  # by track, of every lane the ends of open stages
    placed = []
    for stage in sorted(stages, key=lambda event: (event.begin, -event.duration)):
        here = lanes.setdefault(stage.track, [])
        for ends in here:
            while ends and ends[-1] <= stage.begin:
                ends.pop()
        fitting = (n for n, ends in enumerate(here) if not ends or stage.end <= ends[-1])
        number = next(fitting, len(here))
        if number == len(here):
            here.append([])
        here[number].append(stage.end)
        placed.append((stage, stage.track if number == 0 else f"{stage.track} {number + 1}"))
    return placed


def _flows(stages: Iterable[Event]) -> dict[int, tuple[str, int]]:
    """By a stage's number: the field that its end of an arrow goes into, and the arrow."""
    drafts: dict[int, int] = {}  # by step, the latest draft's number
    flows: dict[int, tuple[str, int]] = {}
    for number, stage in enumerate(stages):
        if stage.name == DRAFT:
            drafts[stage.step] = number
        elif stage.name == VERIFY and (draft := drafts.pop(stage.step, None)) is not None:
            flow = draft + 1
            flows[draft] = ("flow_ids", flow)
            flows[number] = ("terminating_flow_ids", flow)
    return flows
