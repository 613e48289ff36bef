"""The engine process over its pipes: chats, cancels, and everything a client may do wrong."""

from __future__ import annotations

import shutil
import struct
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import engine_client as client
from engine_client import EngineProcess, engine_process, find_engine

QUESTION = [{"role": "user", "content": "What is a tree?"}]


@pytest.fixture
def engine() -> Iterator[EngineProcess]:
    with engine_process(find_engine()) as process:
        yield process


@pytest.fixture(scope="module")
def loaded(smollm2: Path) -> Iterator[EngineProcess]:
    with engine_process(find_engine()) as process:
        reply = process.greet_and_load(smollm2, threads=1)
        assert (reply["chat"], reply["context_length"]) == (True, 2048)
        yield process


def test_an_answer_is_the_one_that_python_gives_in_every_mode(
    loaded: EngineProcess, smollm2: Path
) -> None:
    import sapwood

    expected = "".join(
        sapwood.Engine(smollm2, threads=1, drafter="mix").generate(
            QUESTION, max_new_tokens=12, mode="plain"
        )
    )
    for number, mode in enumerate(("plain", "chain", "fixed", "dynamic"), 10):
        text, end = loaded.answer(number, messages=QUESTION, max_new_tokens=12, mode=mode)
        assert text == expected
        assert end["mode"] == mode
        assert end["stop_reason"] == "length"
        assert end["emitted_tokens"] == 12


def test_a_conversation_sent_again_is_not_computed_again(loaded: EngineProcess) -> None:
    text, first = loaded.answer(20, messages=QUESTION, max_new_tokens=8)
    longer = [*QUESTION, {"role": "assistant", "content": text}, *QUESTION]
    _, second = loaded.answer(21, messages=longer, max_new_tokens=4)
    assert second["reused_prompt_tokens"] >= first["prompt_tokens"] - 1


def test_a_sampled_answer_depends_on_its_seed_alone(loaded: EngineProcess) -> None:
    def sampled(number: int, seed: int, mode: str) -> str:
        return loaded.answer(
            number, messages=QUESTION, max_new_tokens=12, temperature=1.0, seed=seed, mode=mode
        )[0]

    assert sampled(30, 5, "plain") == sampled(31, 5, "dynamic")
    assert sampled(30, 5, "plain") != sampled(32, 6, "plain")


def test_a_stop_text_ends_an_answer_before_it(loaded: EngineProcess) -> None:
    whole, _ = loaded.answer(40, messages=QUESTION, max_new_tokens=16)
    stop = whole[6:10]
    text, end = loaded.answer(41, messages=QUESTION, max_new_tokens=16, stop=[stop])
    assert text == whole[: whole.index(stop)]
    assert end["stop_reason"] == "stop"


def test_snapshots_show_a_tree_whose_accepted_path_begins_the_steps_text(
    loaded: EngineProcess,
) -> None:
    loaded.send(
        client.GENERATE,
        id=50,
        messages=QUESTION,
        max_new_tokens=24,
        snapshot_milliseconds=1,
        mode="fixed",
    )
    frames = loaded.receive_until(client.DONE)
    trees = [frame for kind, frame in frames if kind == client.TREE]
    assert trees
    for tree in trees:
        nodes = tree["nodes"]
        assert all(-1 <= node["parent"] < index for index, node in enumerate(nodes))
        path = "".join(node["text"] for node in nodes if node["accepted"])
        assert tree["emitted"].startswith(path)
    assert [frame["steps"] for kind, frame in frames if kind == client.STATS]


def test_a_cancel_ends_an_answer_at_once_and_the_next_one_works(loaded: EngineProcess) -> None:
    loaded.send(client.GENERATE, id=60, messages=QUESTION, max_new_tokens=2000, ignore_eos=True)
    loaded.receive_until(client.TEXT)
    loaded.send(client.CANCEL, id=60)
    frames = loaded.receive_until(client.DONE)
    assert frames[-1][1]["stop_reason"] == "cancelled"
    assert loaded.answer(61, messages=QUESTION, max_new_tokens=4)[1]["emitted_tokens"] == 4


def test_a_cancel_while_a_long_prompt_is_read_ends_it_too(loaded: EngineProcess) -> None:
    loaded.send(client.GENERATE, id=70, prompt="word " * 1800)
    loaded.receive_until(client.READING)
    loaded.send(client.CANCEL, id=70)
    assert loaded.receive_until(client.DONE)[-1][1]["stop_reason"] == "cancelled"
    assert loaded.answer(71, messages=QUESTION, max_new_tokens=2)[1]["emitted_tokens"] == 2


def test_a_ping_is_answered_while_an_answer_is_made(loaded: EngineProcess) -> None:
    loaded.send(client.GENERATE, id=80, messages=QUESTION, max_new_tokens=200, ignore_eos=True)
    loaded.send(client.PING, id=81)
    pong = loaded.receive_until(client.PONG)[-1][1]
    assert pong["id"] == 81
    assert pong["working"] == 80
    loaded.send(client.GENERATE, id=82, messages=QUESTION)
    assert loaded.receive_until(client.ERROR)[-1][1]["code"] == "busy"
    loaded.send(client.CANCEL, id=80)
    loaded.receive_until(client.DONE)


def test_a_slow_reader_loses_nothing_and_the_engine_does_not_run_ahead(
    loaded: EngineProcess,
) -> None:
    options: dict[str, Any] = {"messages": QUESTION, "max_new_tokens": 64, "ignore_eos": True}
    expected, _ = loaded.answer(90, **options)
    loaded.send(client.GENERATE, id=91, snapshot_milliseconds=1, **options)
    text = ""
    while True:
        kind, frame = loaded.receive()
        time.sleep(0.002)
        if kind == client.TEXT:
            text += frame["text"]
        if kind == client.DONE:
            break
    assert text == expected


def test_a_prompt_of_ten_megabytes_is_refused_and_nothing_else_happens(
    loaded: EngineProcess,
) -> None:
    refusal = loaded.answer(100, prompt="tree " * 2_000_000)[1]
    assert refusal["code"] == "invalid_argument"
    assert "2048" in refusal["message"]
    assert loaded.answer(101, messages=QUESTION, max_new_tokens=2)[1]["emitted_tokens"] == 2


Answer = tuple[str, list[tuple[int, dict[str, Any]]]]


def interrupted(
    engine: EngineProcess, request: tuple[int, dict[str, Any]], **options: Any
) -> Answer:
    """An answer, its text and frames; once its first text has come the request is sent too."""
    engine.send(client.GENERATE, **options)
    frames = engine.receive_until(client.TEXT, client.DONE)
    engine.send(request[0], **request[1])
    if frames[-1][0] != client.DONE:
        frames += engine.receive_until(client.DONE)
    return "".join(frame["text"] for kind, frame in frames if kind == client.TEXT), frames


ATTEMPTS = 100  # a tiny model may have ended its answer before it hears what comes in mid-answer


def test_heat_is_heeded_in_mid_answer_and_the_text_is_the_same(
    engine: EngineProcess, tiny_bundle: Path
) -> None:
    options: dict[str, Any] = {"prompt": "one two one two", "mode": "fixed", "ignore_eos": True}
    options |= {"max_new_tokens": 96}
    engine.greet_and_load(tiny_bundle, threads=1)
    expected, cool = engine.answer(2, **options)
    assert (cool["heat"], cool["temperature_celsius"]) == ("cool", None)
    for _ in range(ATTEMPTS):
        engine.send(client.THERMAL, celsius=20.0)
        engine.ask(client.LOAD, client.LOADED, id=3, bundle=str(tiny_bundle), threads=1)
        text, frames = interrupted(engine, (client.THERMAL, {"celsius": 56.0}), id=3, **options)
        assert text == expected
        hot = frames[-1][1]
        if hot["drafted_tokens"] < cool["drafted_tokens"]:
            break
    assert (hot["heat"], hot["temperature_celsius"]) == ("critical", 56.0)
    assert 0 < hot["drafted_tokens"] < cool["drafted_tokens"]

    text, end = engine.answer(4, **options)
    assert (text, end["drafted_tokens"], end["heat"]) == (expected, 0, "critical")
    # A session that is new is as hot as the device.
    engine.ask(client.LOAD, client.LOADED, id=5, bundle=str(tiny_bundle), threads=1)
    assert engine.answer(6, prompt="one", max_new_tokens=2)[1]["heat"] == "critical"


def test_what_a_device_draws_counts_as_heat(engine: EngineProcess, tiny_bundle: Path) -> None:
    engine.greet_and_load(tiny_bundle, threads=1, verify_checksums=False)
    engine.send(client.THERMAL, celsius=None, watts=4.5)
    assert engine.answer(2, prompt="one", max_new_tokens=2)[1]["heat"] == "warm"
    engine.send(client.THERMAL, celsius=20.0, watts=-1)
    assert "watts" in engine.receive_until(client.ERROR)[-1][1]["message"]


def test_a_trace_is_recorded_in_mid_answer_and_holds_no_word_of_it(
    engine: EngineProcess, tiny_bundle: Path, tmp_path: Path
) -> None:
    pytest.importorskip("perfetto")
    from sapwood.trace.explain import explain
    from sapwood.trace.perfetto_file import from_perfetto
    from sapwood.trace.validate import problems_of

    file = tmp_path / "answer.perfetto-trace"
    options: dict[str, Any] = {"prompt": "one two one two", "ignore_eos": True}
    options |= {"max_new_tokens": 96}
    engine.ask(client.HELLO, client.HELLO_REPLY, protocol=1)
    assert engine.ask(client.TRACE, client.ERROR, id=1, events=4096)["code"] == "not_loaded"
    engine.ask(client.LOAD, client.LOADED, id=2, bundle=str(tiny_bundle), threads=1)
    expected, _ = engine.answer(3, **options)
    steps: list[int] = []
    for _ in range(ATTEMPTS):
        text, frames = interrupted(
            engine, (client.TRACE, {"id": 5, "events": 1 << 16}), id=4, **options
        )
        assert text == expected
        if client.TRACED not in [kind for kind, _ in frames]:
            frames += engine.receive_until(client.TRACED)
        assert (client.TRACED, {"id": 5, "events": 0, "lost": 0}) in frames
        report = engine.ask(client.TRACE, client.TRACED, id=6, file=str(file))
        data = file.read_bytes()
        assert problems_of(data) == []
        events = from_perfetto(data)
        assert (len(events), report["lost"]) == (report["events"], 0)
        steps = [event.step for event in events if event.name == "Target_Verify"]
        if steps:
            break
    # The first step is not in it, nor any word, but whole steps are.
    assert min(steps) > 1
    assert explain(events).steps > 0
    assert b"one" not in data
    assert b"two" not in data

    # The recording has ended.
    assert "recorded" in engine.ask(client.TRACE, client.ERROR, id=7, file=str(file))["message"]


def test_a_recording_goes_on_in_what_is_loaded_next(
    engine: EngineProcess, tiny_bundle: Path, tmp_path: Path
) -> None:
    engine.greet_and_load(tiny_bundle, threads=1, verify_checksums=False)
    engine.ask(client.TRACE, client.TRACED, id=2, events=4)
    engine.ask(client.LOAD, client.LOADED, id=3, bundle=str(tiny_bundle), threads=1)
    engine.answer(4, prompt="one two", max_new_tokens=8)
    nowhere = engine.ask(client.TRACE, client.ERROR, id=5, file=str(tmp_path / "none" / "x"))
    assert str(tmp_path) in nowhere["message"]
    engine.ask(client.TRACE, client.TRACED, id=6, events=4)
    engine.answer(7, prompt="one two", max_new_tokens=8)
    report = engine.ask(client.TRACE, client.TRACED, id=8, file=str(tmp_path / "x"))
    assert report["events"] == 4
    assert report["lost"] > 0
    for fields in ({}, {"events": 4, "file": "x"}, {"events": -1}):
        refusal = engine.ask(client.TRACE, client.ERROR, id=9, **fields)
        assert refusal["code"] == "invalid_argument"
        assert "events" in refusal["message"]


@pytest.mark.parametrize(
    ("fields", "word"),
    [
        ({}, "messages"),
        ({"messages": [], "prompt": "x"}, "messages"),
        ({"messages": [{"role": "user"}]}, "content"),
        ({"prompt": "x", "mode": "fast"}, "mode"),
        ({"prompt": "x", "temperature": -1}, "temperature"),
        ({"prompt": "x", "stop": [""]}, "stop"),
    ],
)
def test_a_wrong_field_is_named_and_nothing_else_happens(
    loaded: EngineProcess, fields: dict[str, Any], word: str
) -> None:
    refusal = loaded.answer(120, **fields)[1]
    assert refusal["code"] == "invalid_argument"
    assert word in refusal["message"]
    assert not refusal["fatal"]


def test_another_version_is_refused_by_name(engine: EngineProcess) -> None:
    error = engine.ask(client.HELLO, client.ERROR, protocol=2)
    assert error["code"] == "version"
    assert error["fatal"]
    status, line = engine.end()
    assert status == 4
    assert len(line.splitlines()) == 1


@pytest.mark.parametrize(
    "garbage",
    [
        b"GET / HTTP/1.1\r\n\r\n",
        struct.pack("<IB", 0, 1),
        struct.pack("<IB", 17 << 20, 1),
        struct.pack("<IB", 2, 1) + b"[]",
        struct.pack("<IB", 3, 1) + b"{{{",
        struct.pack("<IB", 4000, 1) + b'{"a":' * 800,
        struct.pack("<IB", 2, client.PING) + b"{}",
    ],
)
def test_garbage_ends_the_engine_with_a_line(engine: EngineProcess, garbage: bytes) -> None:
    engine.send_bytes(garbage)
    error = engine.receive_until(client.ERROR)[-1][1]
    assert error["code"] == "protocol"
    assert error["fatal"]
    status, line = engine.end()
    assert status == 3
    assert len(line.splitlines()) == 1


def test_half_a_frame_is_waited_for_and_is_an_error_only_at_the_end(
    engine: EngineProcess,
) -> None:
    hello = struct.pack("<IB", 14, client.HELLO) + b'{"protocol":1}'
    for byte in hello:
        engine.send_bytes(bytes([byte]))
    assert engine.receive()[0] == client.HELLO_REPLY
    engine.send_bytes(hello[:9])
    with pytest.raises(TimeoutError):
        engine.receive(0.1)
    assert engine.end()[0] == 3


def test_the_end_of_the_input_ends_the_engine_in_mid_answer(smollm2: Path) -> None:
    with engine_process(find_engine()) as process:
        process.greet_and_load(smollm2)
        process.send(client.GENERATE, id=2, messages=QUESTION, max_new_tokens=2000, ignore_eos=True)
        process.receive_until(client.TEXT)
        assert process.end() == (0, "")


def test_a_reader_that_is_gone_ends_the_engine_without_a_signal(engine: EngineProcess) -> None:
    assert engine.process.stdout is not None
    engine.process.stdout.close()
    engine.send(client.HELLO, protocol=1)
    assert engine.process.wait(client.SECONDS) == 0


def test_a_broken_bundle_is_refused_and_leaves_nothing_loaded(
    engine: EngineProcess, tmp_path: Path, smollm2: Path
) -> None:
    broken = tmp_path / "broken"
    broken.mkdir()
    shutil.copy(smollm2 / "manifest.json", broken)
    error = engine.greet_and_load(broken)
    assert "broken" in error["message"]
    assert not error["fatal"]
    refusal = engine.answer(2, messages=QUESTION)[1]
    assert refusal["code"] == "not_loaded"


def test_a_profile_changes_how_much_is_drafted_and_not_what_is_said(
    tiny_bundle: Path, engine: EngineProcess
) -> None:
    engine.greet_and_load(tiny_bundle, threads=1)
    asked = [{"role": "user", "content": "a b a b a b a b a b a b"}]
    options = {"messages": asked, "mode": "chain", "max_new_tokens": 48}
    said = {
        name: engine.answer(number, profile=name, **options)
        for number, name in enumerate(("off", "auto", "structure", "knowledge"), 2)
    }
    assert len({text for text, _ in said.values()}) == 1
    drafted = {name: end["peak_draft_slots"] for name, (_, end) in said.items()}
    assert (drafted["off"], drafted["structure"], drafted["knowledge"]) == (4, 3, 2)
    _, refused = engine.answer(9, profile="poetry", **options)
    assert refused["code"] == "invalid_argument"
    assert "profile" in refused["message"]
    assert "poetry" in refused["message"]
