"""Data that a target writes by itself: its own text and hidden states, in whole shards."""

from __future__ import annotations

import dataclasses
import fcntl
import json
import os
import random
import signal
import subprocess
import sys
import time
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from conftest import Sapwood, refused
from sapwood import _runtime
from sapwood.errors import SapwoodError
from sapwood.manifest import read_manifest
from sapwood.tokenizer import Tokenizer
from sapwood_export.distill import data, seeds_mix, shards
from sapwood_export.distill.conversations import Ask, Reply, Script, Turns, converse
from sapwood_export.distill.data import DataOptions, feature_layers, make_data
from sapwood_export.distill.data_tally import opening_of
from sapwood_export.distill.generate import Generation, Job, loop_begin
from sapwood_export.distill.seeds import PASSAGE, Seed
from sapwood_export.distill.seeds_mix import FREE
from sapwood_export.distill.shards import Text, open_shard, shard_names, write_shard
from text_rows import text_rows

SMALL_MIX = {FREE: 3, "writing": 2, "code": 2, "summarising": 2, "tools": 1}


@pytest.fixture
def small_shards(monkeypatch: pytest.MonkeyPatch) -> None:
    """Ten conversations a shard."""
    monkeypatch.setattr(seeds_mix, "MIX", SMALL_MIX)
    monkeypatch.setattr(data, "JOBS", sum(SMALL_MIX.values()))


@pytest.fixture(scope="module")
def tokenizer(tiny_bundle: Path) -> Tokenizer:
    return Tokenizer.from_bundle(tiny_bundle, read_manifest(tiny_bundle))


def options(**changes: int) -> DataOptions:
    return dataclasses.replace(DataOptions(tokens=3000, threads=1, memory_bytes=1), **changes)


def make(bundle: Path, folder: Path, **changes: int) -> dict[str, object]:
    return make_data(bundle, folder, options(**changes), lambda _: None)


def contents(folder: Path) -> dict[str, bytes]:
    return {path.name: path.read_bytes() for path in sorted(folder.iterdir())}


# Loops


@pytest.mark.parametrize(
    ("tokens", "begin"),
    [
        ([*range(40), *[7, 8, 9] * 12], 43),
        ([5] * 30, 1),
        (list(range(200)), None),
        ([1, 2] * 4, None),
        ([*range(50), *range(50), *range(50)], 50),
        ([*range(80), *range(80), *range(80)], None),
    ],
)
def test_a_loop_begins_after_its_first_round(tokens: list[int], begin: int | None) -> None:
    assert loop_begin(tokens) == begin


@given(
    st.lists(st.integers(0, 5), max_size=60),
    st.lists(st.integers(6, 40), min_size=1, max_size=30),
    st.integers(4, 9),
)
def test_any_text_that_goes_round_is_cut_to_one_round(
    before: list[int], period: list[int], rounds: int
) -> None:
    tokens = before + period * max(rounds, 30 // len(period) + 1)
    begin = loop_begin(tokens)
    assert begin is not None
    assert len(before) < begin <= len(before) + len(period)


# Conversations


def test_the_pieces_of_a_template_make_the_whole(tokenizer: Tokenizer) -> None:
    turns = Turns(tokenizer)
    said = {"role": "user", "content": "the tree"}
    answered = {"role": "assistant", "content": "grows"}
    system = {"role": "system", "content": "forest"}
    whole = turns.opening([system, said])
    pieces = turns.before_user("forest") + tokenizer.encode("the tree") + turns.after_user("forest")
    assert pieces == whole
    begun = turns.opening([said])
    # An answer begins where the prompt ends; this template writes no header for it.
    end = turns.next_turn("in the forest")[0]
    further = turns.opening([said, answered, {"role": "user", "content": "in the forest"}])
    assert further[len(further) - len(end) :] == end
    assert further[: len(begun)] == begun
    before, after = turns.next_turn(None)
    assert before + tokenizer.encode("in the forest") + after == end


def test_a_passage_is_written_first_and_then_asked_about(tokenizer: Tokenizer) -> None:
    seed = Seed(
        "summarising", f"Sum up: {PASSAGE}", ("Shorter.",), passage="Write about the forest."
    )
    script = converse(seed, Turns(tokenizer), random.Random(0))
    ask = next(script)
    assert "Write about the forest." in tokenizer.decode(ask.tokens)
    ask = script.send(Reply(tokenizer.encode("The tree grows. It is"), ended=False))
    assert ask.new
    assert "Sum up: The tree grows." in tokenizer.decode(ask.tokens)
    assert "It is" not in tokenizer.decode(ask.tokens)
    with pytest.raises(StopIteration):  # nobody asks on after an answer that was cut
        script.send(Reply(tokenizer.encode("It grows"), ended=False))


def test_a_person_that_the_target_never_finishes_is_not_kept(tokenizer: Tokenizer) -> None:
    script = converse(Seed(FREE, ""), Turns(tokenizer), random.Random(1))
    assert next(script).temperature == 1.0
    with pytest.raises(StopIteration) as end:
        script.send(Reply([5, 6], ended=False))
    assert end.value.value is False


# Generation


def scripted(asks: list[Ask]) -> Script:
    left = list(asks)
    while left:
        yield left.pop(0)
    return True


def generate(bundle: Path, jobs: list[Job], lanes: int) -> dict[int, list[Text]]:
    model = _runtime.open_native_model(str(bundle), threads=1)
    generation = Generation(
        model, layers=(1, 2), end_tokens=range(0, 512, 40), lanes=lanes, capacity=160
    )
    return {number: texts for done in generation.run(iter(jobs)) for number, texts in done}


def some_jobs(count: int) -> list[Job]:
    generator = np.random.default_rng(0)
    jobs = []
    for number in range(count):
        temperature = float(number % 3) / 2
        asks = [
            Ask(generator.integers(3, 400, length).tolist(), 40, temperature, new)
            for length, new in ((5 + 9 * number, False), (7, False), (3, True), (30, False))
        ]
        jobs.append(Job(number, 0, scripted(asks), 1000 + number))
    return jobs


def test_what_a_conversation_says_does_not_hang_on_the_others(tiny_bundle: Path) -> None:
    alone = generate(tiny_bundle, some_jobs(9), lanes=1)
    together = generate(tiny_bundle, some_jobs(9), lanes=6)
    assert alone.keys() == together.keys() == set(range(9))
    assert sum(len(texts) for texts in alone.values()) >= 14
    for number, texts in alone.items():
        for text, other in zip(texts, together[number], strict=True):
            np.testing.assert_array_equal(text.tokens, other.tokens)
            np.testing.assert_array_equal(text.hidden, other.hidden)
            assert (text.start, text.temperature) == (other.start, other.temperature)


def test_texts_and_hidden_states_are_the_targets_own(tiny_bundle: Path) -> None:
    model = _runtime.open_native_model(str(tiny_bundle), threads=1)
    model.keep_hidden_states([1, 2])
    spec = model.spec
    jobs = [Job(0, 0, scripted([Ask([5, 6, 7], 30, 0.0)]), 1)]
    (text,) = generate(tiny_bundle, jobs, lanes=2)[0]
    rows = list(range(len(text.tokens)))
    logits = model.forward(
        _runtime.KvStore.create(spec.layers, spec.kv_heads, spec.head_dim, 64),
        **text_rows(text.tokens.tolist()),
    )
    assert text.start == 3
    assert len(rows) > 4
    np.testing.assert_array_equal(logits.argmax(1)[2:-1], text.tokens[3:])
    np.testing.assert_array_equal(model.hidden_states().astype(np.float16), text.hidden)


# The data stage


def test_a_stage_writes_shards_that_say_what_they_are_made_of(
    tiny_bundle: Path, tmp_path: Path, small_shards: None
) -> None:
    document = make(tiny_bundle, tmp_path / "data")
    assert document == json.loads((tmp_path / "data" / "data.json").read_text())
    layers = feature_layers(2)
    assert shards.kept_layers(tmp_path / "data") == layers
    names = shard_names(tmp_path / "data")
    assert len(names) == document["shards"] >= 2
    counted = 0
    for name in names:
        shard = open_shard(tmp_path / "data", name)
        assert shard.hidden.shape == (len(shard.tokens), len(layers), 64)
        assert (np.diff(shard.offsets) > shard.start).all()
        counted += len(shard.tokens)
    assert counted == document["tokens"] >= 3000
    mix = document["mix"]
    assert isinstance(mix, dict)
    assert {"writing", "code", "summarising"} <= mix.keys()  # tools take more than 256 tokens
    assert sum(part["tokens"] for part in mix.values()) == counted


def test_a_run_that_was_stopped_goes_on_to_the_same_shards(
    tiny_bundle: Path, tmp_path: Path, small_shards: None
) -> None:
    whole, stopped = tmp_path / "whole", tmp_path / "stopped"
    make(tiny_bundle, whole, tokens=6000)

    def interrupt(progress: data.DataProgress) -> None:
        if progress.shards == 1:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        make_data(tiny_bundle, stopped, options(tokens=6000), interrupt)
    assert len(shard_names(stopped)) == 1
    make(tiny_bundle, stopped, tokens=6000)
    names = shard_names(whole)
    assert len(names) >= 3
    made, again = contents(whole), contents(stopped)
    for name in names[:-2]:  # the last ones hold what was finished when there was enough
        for part in ("tokens", "start", "sequence", "category", "temperature", "hidden"):
            assert made[f"{name}.{part}.npy"] == again[f"{name}.{part}.npy"], (name, part)
    before = contents(stopped)
    make(tiny_bundle, stopped, tokens=6000)
    assert contents(stopped) == before


def test_time_that_is_up_keeps_what_is_finished_and_something_always_is(
    tiny_bundle: Path, tmp_path: Path, small_shards: None
) -> None:
    long = options(tokens=10**9)
    document = make_data(tiny_bundle, tmp_path / "data", long, lambda _: None, lambda: True)
    assert 8 <= document["texts"] < 32
    assert open_shard(tmp_path / "data", "shard-00000").tokens.size > 0


def test_the_disk_bounds_the_data(tiny_bundle: Path, tmp_path: Path, small_shards: None) -> None:
    make(tiny_bundle, tmp_path / "data", tokens=10**9, disk_bytes=400_000)
    size = sum(path.stat().st_size for path in (tmp_path / "data").iterdir())
    assert 200_000 < size < 600_000


def test_texts_that_begin_alike_are_kept_once(
    tiny_bundle: Path, tmp_path: Path, small_shards: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    same = [Seed("writing", "Write about the forest.")] * sum(SMALL_MIX.values())
    monkeypatch.setattr(data.SeedStream, "next_shard", lambda self: same)
    calls = iter(range(10**6))
    document = make_data(
        tiny_bundle, tmp_path / "data", options(), lambda _: None, lambda: next(calls) > 700
    )
    assert document["texts"] == 1
    assert document["duplicates_left_out"] > 5


def test_what_makes_texts_alike_is_what_the_person_said() -> None:
    tokens = np.array([1, 8, 9, 2, 5, 6, 2], dtype=np.int32)
    other = np.array([1, 8, 9, 2, 7, 2], dtype=np.int32)
    assert opening_of(tokens, 1, True, [2]) == opening_of(other, 1, True, [2])
    assert opening_of(tokens, 4, False, [2]) == opening_of(other, 4, False, [2])
    assert opening_of(tokens, 1, True, [2]) != opening_of(tokens[[0, 1, 1, 3]], 1, True, [2])


def test_data_of_another_seed_is_not_added_to(
    tiny_bundle: Path, tmp_path: Path, small_shards: None
) -> None:
    make(tiny_bundle, tmp_path / "data", tokens=500)
    before = contents(tmp_path / "data")
    with pytest.raises(SapwoodError, match="another seed"):
        make(tiny_bundle, tmp_path / "data", seed=1)
    assert contents(tmp_path / "data") == before


def test_two_runs_do_not_write_in_one_folder(tiny_bundle: Path, tmp_path: Path) -> None:
    lock = os.open(tmp_path, os.O_RDONLY)
    fcntl.flock(lock, fcntl.LOCK_EX)
    try:
        with pytest.raises(SapwoodError, match="another run"):
            make(tiny_bundle, tmp_path)
    finally:
        os.close(lock)


def test_more_memory_holds_more_conversations_within_limits(tiny_bundle: Path) -> None:
    def lanes(memory: int) -> int:
        stage = data._Stage(tiny_bundle, Path("unused"), options(memory_bytes=memory), print)
        return len(stage._generation()._samplers)

    assert lanes(1) == 4
    assert 4 < lanes(4_000_000) < 64
    assert lanes(10**10) == 64


# Shards


def some_text(length: int = 6) -> Text:
    return Text(np.arange(length, dtype=np.int32), 2, 0, 0.5, np.ones((length, 2, 4), np.float16))


def test_a_shard_is_written_whole_or_not_at_all(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    write_shard(tmp_path, "shard-00000", [some_text(), some_text(9)])
    before = contents(tmp_path)

    def full(*_: object, **__: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(np.lib.format, "open_memmap", full)
    with pytest.raises(OSError, match="No space"):
        write_shard(tmp_path, "shard-00001", [some_text()])
    assert contents(tmp_path) == before


def test_a_shard_without_its_hidden_states_is_not_finished(tmp_path: Path) -> None:
    write_shard(tmp_path, "shard-00000", [some_text()])
    assert shard_names(tmp_path) == ["shard-00000"]
    (tmp_path / "shard-00000.hidden.npy").unlink()
    assert shard_names(tmp_path) == []


def test_a_shard_that_is_stopped_between_its_files_leaves_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    replace, calls = os.replace, iter(range(6))

    def stopped(source: Path, target: Path) -> None:
        if next(calls) == 3:
            raise KeyboardInterrupt
        replace(source, target)

    monkeypatch.setattr(os, "replace", stopped)
    with pytest.raises(KeyboardInterrupt):
        write_shard(tmp_path, "shard-00000", [some_text()])
    assert not list(tmp_path.iterdir())


@pytest.mark.parametrize("damage", ["truncated", "other type", "other length"])
def test_a_damaged_shard_is_named(tmp_path: Path, damage: str) -> None:
    write_shard(tmp_path, "shard-00000", [some_text()])
    path = tmp_path / "shard-00000.tokens.npy"
    if damage == "truncated":
        path.write_bytes(path.read_bytes()[:20])
    elif damage == "other type":
        np.save(path, np.zeros(6, dtype=np.float32))
    else:
        np.save(path, np.zeros(5, dtype=np.int32))
    with pytest.raises(SapwoodError, match=r"shard-00000.*delete the shard"):
        open_shard(tmp_path, "shard-00000")


# The command


def distill(*arguments: str | Path) -> tuple[str, ...]:
    return ("distill", *map(str, arguments), "--threads", "1", "--memory", "0.001", "--json")


def test_the_command_writes_data_and_reports_its_mix(
    sapwood: Sapwood, tiny_bundle: Path, tmp_path: Path
) -> None:
    out = tmp_path / "draft"
    arguments = ("--target", tiny_bundle, "--out", out, "--tokens", "1500", "--data-only")
    result = sapwood(*distill(*arguments))
    assert result.returncode == 0, result.stderr
    report = json.loads(result.stdout)
    assert report["data"]["tokens"] >= 1500
    assert report["data_tokens_per_second"] > 0
    assert report["work"] == str(tmp_path / "draft.work")
    assert shard_names(tmp_path / "draft.work" / "data")
    assert not out.exists()
    again = json.loads(sapwood(*distill(*arguments)).stdout)
    assert again["data"] == report["data"]
    assert again["data_tokens_per_second"] == 0


def test_the_command_makes_a_draft_from_nothing(
    sapwood: Sapwood, tiny_source: Path, tmp_path: Path
) -> None:
    pytest.importorskip("torch")
    out = tmp_path / "draft"
    arguments = ("--target", tiny_source, "--out", out, "--tokens", "1500", "--minutes", "0.1")
    # More threads than cores are free wait for each other most of the time.
    result = sapwood(*distill(*arguments), environment={"OMP_NUM_THREADS": "1"}, timeout=600)
    assert result.returncode == 0, result.stderr
    report = json.loads(result.stdout)
    manifest = json.loads((out / "manifest.json").read_text())
    assert manifest["kind"] == "draft"
    assert manifest["draft"]["feature_layers"] == [1]
    assert manifest["training"]["data"] == report["data"]
    assert report["training"]["tokens"] > 0
    assert (tmp_path / "draft.work" / "target" / "manifest.json").is_file()


def test_a_target_that_is_not_there_is_one_line(sapwood: Sapwood, tmp_path: Path) -> None:
    result = sapwood(*distill("--target", tmp_path / "none", "--out", tmp_path / "d"))
    refused(result, str(tmp_path / "none"))
    assert not (tmp_path / "d").exists()
    assert not (tmp_path / "d.work").exists()


def test_a_gpu_that_is_not_there_is_one_line_before_anything_is_written(
    sapwood: Sapwood, tmp_path: Path
) -> None:
    run = sapwood(
        "distill", "--out", tmp_path / "draft", "--device", "cuda",
        environment={"CUDA_VISIBLE_DEVICES": ""},
    )  # fmt: skip
    refused(run, "no GPU", "--device cpu")
    assert not list(tmp_path.iterdir())


def test_ctrl_c_leaves_whole_shards_and_no_traceback(tiny_bundle: Path, tmp_path: Path) -> None:
    folder = tmp_path / "draft.work" / "data"
    arguments = ("--target", tiny_bundle, "--out", tmp_path / "draft", "--data-only")
    process = subprocess.Popen(
        [sys.executable, "-m", "sapwood", *distill(*arguments)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    waited_until = time.monotonic() + 120
    while not (folder.is_dir() and shard_names(folder)) and time.monotonic() < waited_until:
        time.sleep(0.05)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130, errors
    assert "Traceback" not in errors
    names = shard_names(folder)
    assert len(list(folder.iterdir())) == 6 * len(names) + 1
    for name in names:
        open_shard(folder, name)
