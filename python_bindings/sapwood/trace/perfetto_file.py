"""Perfetto traces that the runtime wrote (trace/perfetto_trace.h), read back."""

from __future__ import annotations

from typing import Any

from sapwood.errors import SapwoodError
from sapwood.trace.events import COUNTER, INSTANT, STAGE, Event


def perfetto_messages() -> Any:
    """PyPI perfetto's message classes; one line about what is missing without them."""
    try:
        from perfetto.protos.perfetto.trace import perfetto_trace_pb2
    except ImportError:
        raise SapwoodError(
            "reading traces needs the package perfetto; pip install 'sapwood[trace]'"
        ) from None
    return perfetto_trace_pb2


def from_perfetto(data: bytes) -> list[Event]:
    """The events of a trace that the runtime wrote, by the time they began."""
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
