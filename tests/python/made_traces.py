"""Traces made by hand: steps of so many milliseconds in every stage."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

from sapwood import _runtime
from sapwood.options import MODES
from sapwood.trace.events import COUNTER, STAGE, Event

MS = 1_000_000


@dataclass(frozen=True)
class MadeStep:
    """Milliseconds by stage; the defaults make a healthy step."""

    draft: float = 0.4
    prune: float = 0.05
    sync: float = 0.02
    verify: float = 4.2
    sample: float = 0.05
    learn: float = 0.05
    gap: float = 0.05  # in no stage
    rows: int = 4
    accepted: int = 1


def healthy(steps: int = 60) -> list[MadeStep]:
    """One step in five is of one row and nothing accepted."""
    alone = MadeStep(draft=0.02, prune=0.0, verify=3.9, rows=1, accepted=0)
    return [alone if i % 5 == 0 else MadeStep() for i in range(steps)]


def changed(steps: list[MadeStep], **values: float) -> list[MadeStep]:
    return [replace(step, **values) for step in steps]  # type: ignore[arg-type]


def trace_of(
    steps: list[MadeStep], counters: dict[str, list[float]] | None = None, begin: int = 0
) -> list[Event]:
    """The events of the steps one after the other, and counters spread over them."""
    events: list[Event] = []
    now = begin

    def stage(name: str, track: str, begin: int, milliseconds: float, **of: int) -> int:
        duration = round(milliseconds * MS)
        events.append(
            Event(name, STAGE, track, begin, duration, mode="dynamic", **of)  # type: ignore[arg-type]
        )
        return begin + duration

    for number, step in enumerate(steps, start=1):
        of = {"step": number, "rows": step.rows}
        if step.prune:
            stage("Prune_Controller", "draft", now + 1_000, step.prune, **of)
        now = stage("Draft_Generate", "draft", now, step.draft, **of)
        now = stage("Sync_Draft2Target", "target", now, step.sync, **of)
        now = stage("Target_Verify", "target", now, step.verify, **of)
        now = stage(
            "Accept_Reject_Sample", "target", now, step.sample, **of, accepted=step.accepted
        )
        now += round(step.gap * MS)
        now = stage("Learn", "draft", now, step.learn, **of)
    for name, values in (counters or {}).items():
        for i, value in enumerate(values):
            moment = begin + (now - begin) * i // len(values)
            events.append(Event(name, COUNTER, "engine", moment, value=value))
    return events


def perfetto_bytes(events: Sequence[Event]) -> bytes:
    """The runtime's trace file of these events."""
    names = [name for name, *_ in _runtime.trace_names()]
    reasons = _runtime.reason_names()
    ring = _runtime.TraceRing(max(1, len(events)))
    for event in events:
        ring.record(
            names.index(event.name),
            step=event.step,
            rows=event.rows,
            accepted=event.accepted,
            value=event.value,
            mode=MODES.index(event.mode),
            begin_ns=event.begin,
            duration_ns=event.duration,
            reason=reasons.index(event.reason),
        )
    return ring.perfetto_trace()
