"""Traces: what is recorded, how it is written, and what is said of it."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

pytest.importorskip("perfetto")

from conftest import Sapwood, refused
from made_traces import MS, MadeStep, changed, healthy, perfetto_bytes, trace_of
from sapwood import _runtime
from sapwood.errors import SapwoodError
from sapwood.trace.events import COUNTER, INSTANT, STAGE, Event, events_of
from sapwood.trace.explain import explain, steps_of
from sapwood.trace.perfetto_file import from_perfetto, perfetto_messages
from sapwood.trace.validate import problems_of


def parsed(data: bytes) -> Any:
    trace = perfetto_messages().Trace()
    trace.ParseFromString(data)
    return trace


def test_a_ring_gives_back_what_was_recorded() -> None:
    ring = _runtime.TraceRing(4)
    names = [name for name, *_ in _runtime.trace_names()]
    verify = names.index("Target_Verify")
    ring.record(verify, step=3, rows=5, mode=3, begin_ns=1_000, duration_ns=500)
    ring.record(names.index("KV slots"), value=12.5, begin_ns=2_000)
    assert events_of(ring) == [
        Event("Target_Verify", STAGE, "target", 1_000, 500, step=3, rows=5, mode="dynamic"),
        Event("KV slots", COUNTER, "engine", 2_000, value=12.5),
    ]
    for step in range(10):
        ring.record(verify, step=step)
    assert [event.step for event in events_of(ring)] == [6, 7, 8, 9]
    assert ring.recorded == 12
    for capacity in (0, 1 << 23):
        with pytest.raises(SapwoodError, match="capacity must be from 1 to"):
            _runtime.TraceRing(capacity)
    with pytest.raises(SapwoodError, match="name must be from 0 to"):
        ring.record(len(names))


def test_a_written_trace_has_no_problems_and_reads_back() -> None:
    events = trace_of(healthy(20), {"KV slots": [10, 20, 30], "tree size": [3, 4]})
    events.append(
        Event("heat change", INSTANT, "engine", events[40].begin, value=2.0, reason="power")
    )
    data = perfetto_bytes(events)
    assert problems_of(data) == []
    read = from_perfetto(data)
    by_time = sorted(events, key=lambda event: (event.begin, -event.duration))
    assert [(e.name, e.begin, e.duration, e.value, e.rows, e.accepted, e.reason) for e in read] == [
        (e.name, e.begin, e.duration, e.value, e.rows, e.accepted, e.reason) for e in by_time
    ]
    assert {event.mode for event in read if event.kind == STAGE} == {"dynamic"}


def test_an_arrow_leads_from_every_draft_to_the_pass_that_verified_it() -> None:
    trace = parsed(perfetto_bytes(trace_of(healthy(7)) + trace_of(healthy(7), begin=1_000 * MS)))
    begun, ended = [], []
    for packet in trace.packet:
        begun += packet.track_event.flow_ids
        ended += packet.track_event.terminating_flow_ids
        if packet.track_event.flow_ids:
            assert packet.track_event.name == "Draft_Generate"
    assert len(begun) == len(set(begun)) == 14
    assert sorted(begun) == sorted(ended)


def test_stages_that_overlap_get_a_lane_beside_each_other() -> None:
    stages = [
        Event("Draft_Generate", STAGE, "draft", 0, 10 * MS, step=1),
        Event("Draft_Generate", STAGE, "draft", 5 * MS, 10 * MS, step=2),
        Event("Prune_Controller", STAGE, "draft", 6 * MS, MS, step=2),
        Event("Draft_Generate", STAGE, "draft", 20 * MS, 0, step=3),
        Event("Draft_Generate", STAGE, "draft", 20 * MS, 10 * MS, step=4),
    ]
    data = perfetto_bytes(stages)
    assert problems_of(data) == []
    tracks = [
        p.track_descriptor.name for p in parsed(data).packet if p.HasField("track_descriptor")
    ]
    assert "draft 2" in tracks
    assert "draft 3" not in tracks
    assert sorted((e.step, e.begin, e.duration) for e in from_perfetto(data)) == sorted(
        (e.step, e.begin, e.duration) for e in stages
    )


def broken(change: Callable[[Any], None]) -> list[str]:
    trace = parsed(perfetto_bytes(trace_of(healthy(5), {"KV slots": [1, 2]})))
    change(trace)
    return problems_of(trace.SerializeToString())


def event_packets(trace: Any, kind: str) -> list[Any]:
    return [
        packet
        for packet in trace.packet
        if packet.HasField("track_event")
        and packet.track_event.type == getattr(packet.track_event, kind)
    ]


def swap_times(trace: Any) -> None:
    first, second = event_packets(trace, "TYPE_SLICE_BEGIN")[:2]
    first.timestamp, second.timestamp = second.timestamp, first.timestamp


def test_the_validator_sees_what_a_parser_passes_over() -> None:
    assert broken(lambda trace: None) == []
    cases: list[tuple[Callable[[Any], None], str]] = [
        (lambda t: t.packet[0].MergeFromString(b"\xa2\xf4\x03\x00"), "unknown field"),
        (lambda t: t.packet[5].ClearField("trusted_packet_sequence_id"), "no sequence id"),
        (lambda t: t.packet[0].ClearField("sequence_flags"), "state cleared"),
        (swap_times, "goes back in time"),
        (
            lambda t: setattr(event_packets(t, "TYPE_COUNTER")[0].track_event, "track_uuid", 999),
            "not described",
        ),
        (
            lambda t: setattr(event_packets(t, "TYPE_COUNTER")[0].track_event, "track_uuid", 2),
            "for counters",
        ),
        (lambda t: event_packets(t, "TYPE_SLICE_BEGIN")[0].track_event.ClearField("name"), "name"),
        (lambda t: t.packet.remove(event_packets(t, "TYPE_SLICE_END")[-1]), "did not end"),
        (lambda t: t.packet.remove(event_packets(t, "TYPE_SLICE_BEGIN")[0]), "did not begin"),
        (lambda t: t.packet.remove(t.packet[2]), "parent that was not described"),
        (
            lambda t: event_packets(t, "TYPE_SLICE_END")[0].track_event.terminating_flow_ids.append(
                77
            ),
            "arrow 77",
        ),
    ]
    for change, words in cases:
        found = broken(change)
        assert any(words in problem for problem in found), (words, found)
    assert problems_of(b"\xff\xff")[0].startswith("not a trace")


def rules_of(steps: list[MadeStep], **counters: list[float]) -> list[str]:
    found = explain(trace_of(steps, {name.replace("_", " "): v for name, v in counters.items()}))
    return [finding.rule for finding in found.findings]


def test_a_healthy_trace_has_none_of_the_bottlenecks() -> None:
    told = explain(trace_of(healthy(), {"KV slots": [100, 400], "KV runs": [1, 3]}))
    assert told.findings == []
    assert told.steps == 60
    assert told.tokens_a_step == pytest.approx(1.8)
    assert sum(told.shares.values()) == pytest.approx(1)
    assert next(iter(told.shares)) == "Target_Verify"
    assert "Prune_Controller" not in told.shares, "it is part of drafting"


def contended() -> list[MadeStep]:
    return [
        changed([step], verify=9.0)[0] if i % 6 == 1 else step for i, step in enumerate(healthy())
    ]


def slowing() -> list[MadeStep]:
    return [changed([s], verify=s.verify * (1 + i / 150))[0] for i, s in enumerate(healthy(90))]


@pytest.mark.parametrize(
    ("rule", "steps", "counters"),
    [
        ("draft too slow for its acceptance", changed(healthy(), draft=2.6), {}),
        (
            "tree too wide for the cost curve",
            [s if s.rows == 1 else changed([s], rows=24, verify=9.0)[0] for s in healthy()],
            {},
        ),
        ("synchronisation gaps", changed(healthy(), sync=0.6), {}),
        ("synchronisation gaps", changed(healthy(), gap=0.9), {}),
        ("sampling on a large vocabulary", changed(healthy(), sample=0.8), {}),
        ("KV fragmentation", healthy(), {"KV_slots": [64, 320], "KV_runs": [1, 40]}),
        ("thread contention", contended(), {}),
        ("heat", slowing(), {"temperature": [39.0, 44.0, 52.0]}),
    ],
)
def test_every_bottleneck_is_named_by_a_trace_that_has_it(
    rule: str, steps: list[MadeStep], counters: dict[str, list[float]]
) -> None:
    assert rules_of(steps, **counters) == [rule]
    (finding,) = explain(
        trace_of(steps, {name.replace("_", " "): v for name, v in counters.items()})
    ).findings
    assert any(character.isdigit() for character in finding.words), "it says how much"
    assert finding.advice


def test_warm_without_slower_passes_and_slower_ones_without_warmth_are_not_heat() -> None:
    assert rules_of(healthy(90), temperature=[39.0, 44.0, 52.0]) == []
    assert "heat" not in rules_of(slowing(), temperature=[39.0, 40.0, 41.0])


def test_a_trace_without_steps_says_what_to_do() -> None:
    with pytest.raises(SapwoodError, match="no whole step"):
        explain([Event("Prefill", STAGE, "target", 0, 5 * MS)])
    with pytest.raises(SapwoodError, match="not a Perfetto trace"):
        from_perfetto(b"\xff\xff\xff")


@pytest.fixture(scope="module")
def recorded(tmp_path_factory: pytest.TempPathFactory, tiny_bundle: Path) -> list[Event]:
    from sapwood import Engine

    engine = Engine(tiny_bundle, threads=1)
    ring = engine.record(4096)
    for _ in engine.generate("one two three one two three", raw=True, max_new_tokens=24):
        pass
    return events_of(ring)


def test_an_engine_records_every_stage_of_every_step(recorded: list[Event]) -> None:
    steps = steps_of(recorded)
    assert steps
    stages = {event.name for event in recorded}
    for name in ("Prefill", "Draft_Generate", "Sync_Draft2Target", "Target_Verify"):
        assert name in stages, name
    assert {"Accept_Reject_Sample", "Learn", "tree size", "accepted", "KV slots"} <= stages
    assert problems_of(perfetto_bytes(recorded)) == []
    told = explain(recorded)
    assert told.tokens_a_step * told.steps == 24
    kv_slots = [event.value for event in recorded if event.name == "KV slots"]
    assert kv_slots[-1] > 0


def test_the_command_writes_a_trace_without_a_word_of_the_texts(
    sapwood: Sapwood, tiny_bundle: Path, tmp_path: Path
) -> None:
    out = tmp_path / "out.perfetto-trace"
    prompt = "photosynthesis in the garden"
    arguments = (tiny_bundle, "-o", out, "--prompt", prompt, "--max-new-tokens", "16")
    result = sapwood("trace", "run", *arguments, "--json")
    assert result.returncode == 0, result.stderr
    report = json.loads(result.stdout)
    assert report["events"] > 16
    assert report["overwritten"] == 0
    data = out.read_bytes()
    assert problems_of(data) == []
    for word in prompt.split():
        assert word.encode() not in data
    explained = json.loads(sapwood("trace", "explain", out, "--json").stdout)
    assert explained["steps"] == report["stats"]["steps"]
    assert "steps," in sapwood("trace", "explain", out).stdout
    assert sorted(tmp_path.iterdir()) == [out]


def test_a_stretch_from_the_middle_is_drawn(sapwood_here: Sapwood, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    from sapwood.cli.trace_plot import stretch_of

    image = pytest.importorskip("matplotlib.image")
    events = trace_of(healthy(20), {"KV slots": [1, 2]})
    assert {stage.step for stage in stretch_of(events)} == set(range(8, 14))
    assert {stage.step for stage in stretch_of(trace_of(healthy(3)))} == {1, 2, 3}
    trace, picture = tmp_path / "a.perfetto-trace", tmp_path / "a.png"
    trace.write_bytes(perfetto_bytes(events))
    assert sapwood_here("trace", "explain", trace, "--plot", picture).returncode == 0
    colours = image.imread(picture)[..., :3].reshape(-1, 3)
    for shade in ((0.184, 0.435, 0.69), (0.173, 0.541, 0.294)):  # drafting, verifying
        assert (abs(colours - shade).max(axis=-1) < 0.02).sum() > 500
    refused(sapwood_here("trace", "explain", trace, "--plot", tmp_path / "a.jpg"), ".png")
    assert sorted(path.name for path in tmp_path.iterdir()) == ["a.perfetto-trace", "a.png"]


def test_bad_input_is_one_line(sapwood: Sapwood, tiny_bundle: Path, tmp_path: Path) -> None:
    refused(sapwood("trace", "run", tiny_bundle, "--prompt", "a"), "no file to write")
    refused(sapwood("trace", "run", tiny_bundle, "-o", tmp_path / "t"), "no prompt")
    refused(
        sapwood("trace", "run", tiny_bundle, "--prompt", "a", "-o", tmp_path / "no" / "t"),
        "cannot be written",
    )
    refused(sapwood("trace", "explain", tmp_path / "none"), "cannot be read")
    damaged = tmp_path / "damaged"
    damaged.write_bytes(b"\xff\xff\xff")
    refused(sapwood("trace", "explain", damaged), "not a Perfetto trace")


def test_bench_says_what_recording_costs(sapwood: Sapwood, tiny_bundle: Path) -> None:
    arguments = ("bench", "trace", tiny_bundle, "--repeats", "1", "--max-new-tokens", "32")
    report = json.loads(sapwood(*arguments, "--json").stdout)
    assert report["pairs"] >= 3
    assert 0 < report["event_nanoseconds"] < report["stage_nanoseconds"]
    assert report["ratio"] > 0
    assert "times as long" in sapwood(*arguments).stdout
