"""What is wrong with a trace file, beyond what a parser notices.

Viewers draw damaged traces in silence: an unknown field is dropped, an end without a begin closes
another stage, an event of an unknown track disappears.
"""

from __future__ import annotations

from collections import defaultdict
from typing import Any

from google.protobuf.unknown_fields import UnknownFieldSet

from sapwood.trace.perfetto_file import perfetto_messages


def problems_of(data: bytes) -> list[str]:
    """One line for everything that does not hold; empty for a good trace."""
    messages = perfetto_messages()
    trace = messages.Trace()
    try:
        trace.ParseFromString(data)
    except Exception as error:
        return [f"not a trace: {error}"]
    checker = _Checker()
    for number, packet in enumerate(trace.packet):
        checker.check(number, packet)
    return checker.problems + checker.left_open()


class _Checker:
    def __init__(self) -> None:
        self.problems: list[str] = []
        self._cleared: set[int] = set()
        self._latest: dict[int, int] = {}
        self._tracks: dict[int, bool] = {}  # whether it is a counter's
        self._open: dict[int, list[str]] = defaultdict(list)
        self._flows: set[int] = set()

    def check(self, number: int, packet: Any) -> None:
        def wrong(what: str) -> None:
            self.problems.append(f"packet {number}: {what}")

        for path in _unknown_fields(packet, "packet"):
            wrong(f"unknown field {path}")
        sequence = packet.trusted_packet_sequence_id
        if sequence == 0:
            wrong("no sequence id")
        if sequence not in self._cleared:
            if not packet.sequence_flags & packet.SEQ_INCREMENTAL_STATE_CLEARED:
                wrong(f"sequence {sequence} does not begin with its state cleared")
            self._cleared.add(sequence)
        if packet.HasField("track_descriptor"):
            track = packet.track_descriptor
            if track.uuid == 0 or track.uuid in self._tracks:
                wrong(f"track {track.uuid} is none, or described twice")
            if track.HasField("parent_uuid") and track.parent_uuid not in self._tracks:
                wrong(
                    f"track {track.uuid} has a parent that was not described: {track.parent_uuid}"
                )
            self._tracks[track.uuid] = track.HasField("counter")
        if packet.HasField("track_event"):
            if packet.timestamp < self._latest.get(sequence, 0):
                wrong("goes back in time")
            self._latest[sequence] = packet.timestamp
            self._check_event(packet.track_event, wrong)

    def _check_event(self, event: Any, wrong: Any) -> None:
        track = event.track_uuid
        if track not in self._tracks:
            wrong(f"is on track {track}, which was not described")
            return
        if (event.type == event.TYPE_COUNTER) != self._tracks[track]:
            wrong(f"track {track} is for counters, or the event is one and the track is not")
        if event.type == event.TYPE_SLICE_BEGIN:
            if not event.name:
                wrong("a stage without a name")
            self._open[track].append(event.name)
        elif event.type == event.TYPE_SLICE_END:
            if not self._open[track]:
                wrong("ends a stage that did not begin")
            else:
                self._open[track].pop()
        self._flows.update(event.flow_ids)
        for flow in event.terminating_flow_ids:
            if flow not in self._flows:
                wrong(f"ends arrow {flow}, which began nowhere")

    def left_open(self) -> list[str]:
        return [
            f"track {track}: {', '.join(names)} did not end"
            for track, names in self._open.items()
            if names
        ]


def _unknown_fields(message: Any, path: str) -> list[str]:
    found = [f"{path}.{field.field_number}" for field in UnknownFieldSet(message)]
    for descriptor, value in message.ListFields():
        if descriptor.message_type is None:
            continue
        repeated = value if not hasattr(value, "ListFields") else [value]
        for part in repeated:
            found += _unknown_fields(part, f"{path}.{descriptor.name}")
    return found
