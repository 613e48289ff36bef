"""What a prompt is told to ask for, and that nothing but the amount of drafting hangs on it."""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from conftest import Sapwood, refused
from sapwood import Engine, _runtime
from sapwood.cli.bench.suite_sides import sides_of
from sapwood.cli.bench.suite_table import show
from sapwood.errors import SapwoodError
from sapwood.options import PROFILES, SCENARIOS, AnswerOptions, completed
from sapwood.profile import asked_text, beginning_with, scenario_of
from sapwood_export.scenario.prompts import make_prompts

WORDS = _runtime.SCENARIO_WORDS
MARKS = "!\"#$%&'()*+,-./:;<=>?@[\\]^_`{|}~"


def hashed(data: bytes, value: int = 2166136261) -> int:
    for byte in data:
        value = (value ^ byte) * 16777619 % (1 << 32)
    return value


def bucket(value: int) -> int:
    return (value ^ (value >> 15)) % WORDS


def kind(byte: int) -> str:
    if chr(byte).isdigit() and byte < 0x80:
        return "0"
    return "a" if byte >= 0x80 or chr(byte).isalpha() else " "


def words_of(text: bytes) -> set[int]:
    found, before, at = set(), 0, 0
    while at < len(text):
        end = at
        while end < len(text) and kind(text[end]) == kind(text[at]) != " ":
            end += 1
        if end == at:
            at += 1
            continue
        word = b"0" if kind(text[at]) == "0" else text[at:end].lower()
        if len(word) > 5:
            found.add(bucket(hashed(b"<" + word[:5])))
        value = hashed(word)
        found.add(bucket(value))
        found.add(bucket(hashed(before.to_bytes(4, "little") + value.to_bytes(4, "little"))))
        before, at = value, end
    return found


def features_of(prompt: str) -> list[int]:
    """A twin of ScenarioFeatures."""
    data = prompt.encode()
    parts = [data] if len(data) <= 900 else [data[:600], data[-300:]]
    found = set().union(*map(words_of, parts))
    seen = data[:4096]
    all_bytes = max(1, len(seen))
    base = WORDS
    found |= {base + MARKS.index(chr(byte)) for byte in seen if chr(byte) in MARKS}
    numbers = sum(
        kind(byte) == "0" and (i == 0 or kind(seen[i - 1]) != "0") for i, byte in enumerate(seen)
    )
    shares = (1e-9, 0.01, 0.03, 0.08)
    bins = (
        (13, min(12, max(0, len(data).bit_length() - 1))),
        (8, min(7, (seen.count(b"\n") + 1).bit_length() - 1)),
        (5, sum(sum(kind(b) == "0" for b in seen) / all_bytes >= edge for edge in shares)),
        (
            5,
            sum(
                sum(chr(b) in MARKS and chr(b) not in ".,?!'\"-" for b in seen) / all_bytes >= edge
                for edge in shares
            ),
        ),
        (5, sum(numbers >= edge for edge in (1, 2, 3, 5))),
        (3, sum(sum(b >= 0x80 for b in seen) / all_bytes >= edge for edge in (1e-9, 0.05))),
    )
    base += len(MARKS)
    for size, at in bins:
        found.add(base + at)
        base += size
    last = next((b for b in reversed(seen) if b > ord(" ")), 0)
    if last == ord("?"):
        found.add(base)
    assert base + 1 == _runtime.SCENARIO_FEATURES
    return sorted(found)


@given(st.text(max_size=60))
def test_features_are_those_of_the_twin(text: str) -> None:
    assert _runtime.scenario_features(text) == features_of(text)


def test_features_are_those_of_the_twin_on_prompts_of_every_length() -> None:
    for prompt in make_prompts(1, seed=8)[::10]:
        assert _runtime.scenario_features(prompt.text) == features_of(prompt.text)
        longer = prompt.text * 20
        assert _runtime.scenario_features(longer) == features_of(longer)


def test_names_are_those_of_the_runtime() -> None:
    assert list(SCENARIOS) == _runtime.scenario_names()
    assert ("off", "auto", *SCENARIOS) == PROFILES
    with pytest.raises(SapwoodError, match="no scenario"):
        _runtime.scenario_template("off")


def test_ways_of_asking_that_it_has_not_seen_are_told_apart() -> None:
    right: Counter[str] = Counter()
    asked: Counter[str] = Counter()
    for prompt in make_prompts(3, seed=21):
        if not prompt.held_out:
            continue
        asked[prompt.scenario] += 1
        name, probability = _runtime.guess_scenario(prompt.text)
        assert sum(probability) == pytest.approx(1)
        assert name in (None, SCENARIOS[int(np.argmax(probability))])
        right[prompt.scenario] += name == prompt.scenario
    shares = {name: right[name] / asked[name] for name in SCENARIOS}
    assert min(shares.values()) > 0.7, shares
    assert sum(shares.values()) / len(shares) > 0.8, shares


def test_what_says_nothing_is_told_to_be_nothing_or_something_without_harm() -> None:
    for text in ("", " ", "\n\n", "?", "\x00", "ñ" * 5000):
        name, probability = _runtime.guess_scenario(text)
        assert name is None or name in SCENARIOS
        assert len(probability) == len(SCENARIOS)


def test_a_profile_replaces_what_speculation_begins_with_and_nothing_else() -> None:
    options = completed(AnswerOptions, {"profile": "auto", "seed": 3})
    scenario = scenario_of(options, "Write a Python function that sorts a list: def f(items):")
    assert scenario == "structure"
    changed = beginning_with(options, scenario)
    length, nodes, beta = _runtime.scenario_template("structure")
    assert changed == {**options, "chain_length": length, "fixed_nodes": nodes, "beta": beta}
    assert beginning_with(options, None) == options
    assert scenario_of(completed(AnswerOptions, {}), "1 + 1 = ?") is None
    assert scenario_of(completed(AnswerOptions, {"profile": "creativity"}), "") == "creativity"


def test_the_latest_turn_is_read_after_what_the_system_says() -> None:
    turns = [{"role": "user", "content": "first"}, {"role": "assistant", "content": "answer"}]
    asked = [{"role": "system", "content": "be brief"}, *turns, {"role": "user", "content": "last"}]
    assert asked_text(asked) == "be brief\nlast"
    assert asked_text("hello") == "hello"
    assert asked_text("hello", "be kind") == "be kind\nhello"


@pytest.mark.parametrize("temperature", [0.0, 0.8])
@pytest.mark.parametrize("mode", ["chain", "fixed", "dynamic"])
def test_the_text_is_the_same_with_every_profile(
    exit_bundle: Path, mode: str, temperature: float
) -> None:
    engine = Engine(exit_bundle, threads=1, drafter="cascade")
    prompt = "Write a poem about a {quokka}, and then 12 lines of code."
    answer: AnswerOptions = {"max_new_tokens": 32, "temperature": temperature, "seed": 4}
    plain = list(_ids(engine, prompt, {**answer, "mode": "plain"}))
    for profile in PROFILES:
        assert _ids(engine, prompt, {**answer, "mode": mode, "profile": profile}) == plain


def _ids(engine: Engine, prompt: str, options: AnswerOptions) -> list[int]:
    engine.forget()
    generation = engine.generate(prompt, **options)
    assert "".join(generation) == generation.text
    return generation.token_ids


def test_a_profile_reaches_the_session(tiny_bundle: Path) -> None:
    engine = Engine(tiny_bundle, threads=1, drafter="mix")
    for name in ("structure", "knowledge"):
        options: AnswerOptions = {"mode": "chain", "max_new_tokens": 64, "profile": name}
        generation = engine.generate("a b a b a b a b a b", raw=True, **options)
        assert len("".join(generation)) > 0
        assert generation.scenario == name
        assert engine.session.stats.peak_draft_slots == _runtime.scenario_template(name)[0]


def test_the_command_says_what_it_took_a_prompt_for(
    sapwood_here: Sapwood, tiny_bundle: Path
) -> None:
    asked = ("generate", tiny_bundle, "--prompt", "Write a poem about the sea.", "--threads", "1")
    asked = (*asked, "--max-new-tokens", "4", "--json")
    assert json.loads(sapwood_here(*asked).stdout)["scenario"] is None
    told = json.loads(sapwood_here(*asked, "--profile", "auto").stdout)
    assert told["scenario"] == "creativity"
    refused(sapwood_here(*asked, "--profile", "poetry"), "profile", "poetry", "creativity")


def test_sides_are_named_by_what_there_are_several_of() -> None:
    def names(*lists: list[str]) -> list[str]:
        return [side.name for side in sides_of(*lists)]

    assert names(["plain", "chain"], [], []) == ["plain", "chain"]
    assert names(["plain", "chain"], ["mix"], ["off"]) == ["plain", "chain"]
    assert names(["plain", "chain"], ["mix", "none"], []) == ["plain", "chain mix", "chain none"]
    assert names(["chain", "plain"], ["mix", "none"], ["off", "auto"]) == [
        *("chain mix off", "chain mix auto", "chain none off", "chain none auto"),
        "plain",
    ]


def test_a_suite_compares_drafters_and_profiles_in_one_run(
    sapwood_here: Sapwood,
    exit_bundle: Path,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    suite, page = tmp_path / "s.jsonl", tmp_path / "page.html"
    lines = [
        {"question_id": index, "category": "a", "turns": [text]}
        for index, text in enumerate(["a b c a b c a b", "Write a poem."])
    ]
    suite.write_text("".join(json.dumps(line) + "\n" for line in lines))
    run = ("bench", "suite", exit_bundle, "--suite", suite, "--modes", "plain,chain")
    run = (*run, "--threads", "1", "--max-new-tokens", "24")
    both = ("--drafters", "mix,none,early-exit", "--profiles", "off,structure")
    result = sapwood_here(*run, *both, "--html", page, "--json")
    assert result.returncode == 0, result.stderr
    report = json.loads(result.stdout)
    assert (report["drafter"], report["profile"]) == ("mix, none, early-exit", "off, structure")
    modes = report["modes"]
    assert list(modes) == [
        "plain",
        *(f"chain {d} {p}" for d in ("mix", "none", "early-exit") for p in ("off", "structure")),
    ]
    assert report["equal_tokens"] is True
    assert modes["chain none off"]["mean_rows"] == 1
    drafted = {name: mode["peak_draft_slots"] for name, mode in modes.items()}
    assert drafted["chain mix off"] == drafted["chain early-exit off"] == 4
    assert drafted["chain mix structure"] == _runtime.scenario_template("structure")[0]
    assert "chain early-exit structure" in page.read_text(encoding="utf-8")
    show(report)
    table = capsys.readouterr().out.splitlines()
    assert [line.split("  ")[0] for line in table[1 : 1 + len(modes)]] == list(modes)
    refused(sapwood_here(*run, "--drafters", "mix,oracle"), "--drafters", "oracle")
    refused(sapwood_here(*run, "--drafters", "mix,none", "--drafter", "mix"), "leave out --drafter")
