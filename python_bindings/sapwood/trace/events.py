"""A ring's events as rows, by their names."""

from __future__ import annotations

from dataclasses import dataclass

from sapwood import _runtime
from sapwood.options import MODES

STAGE, COUNTER, INSTANT = "stage", "counter", "instant"


@dataclass(frozen=True)
class Event:
    """One event. Times are nanoseconds of the monotonic clock."""

    name: str
    kind: str  # STAGE, COUNTER or INSTANT
    track: str
    begin: int
    duration: int = 0  # of a stage
    value: float = 0.0  # of a counter, or what something is since a change
    step: int = 0  # of the answer, from 1; 0: before the first
    rows: int = 0
    accepted: int = 0
    mode: str = MODES[0]
    reason: str = ""  # of a change, in words

    @property
    def end(self) -> int:
        return self.begin + self.duration


def events_of(ring: _runtime.TraceRing) -> list[Event]:
    """What a ring holds, in the order it was recorded in."""
    names, reasons = _runtime.trace_names(), _runtime.reason_names()
    columns = ring.events()
    rows = zip(*(columns[field].tolist() for field in _FIELDS), strict=True)
    events = []
    for number, begin, duration, value, step, count, accepted, mode, reason in rows:
        name, kind, track = names[number]
        events.append(
            Event(
                name,
                kind,
                track,
                begin,
                duration,
                value,
                step,
                count,
                accepted,
                MODES[mode],
                reasons[reason],
            )
        )
    return events


_FIELDS = (
    "name",
    "begin_ns",
    "duration_ns",
    "value",
    "step",
    "rows",
    "accepted",
    "mode",
    "reason",
)
