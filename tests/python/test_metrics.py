"""Live metrics: what Engine.metrics says while an answer is made, and how generate shows it."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest

from conftest import Sapwood, refused
from sapwood import Engine
from sapwood.errors import SapwoodError
from test_cli_terminal import Terminal

PROMPT = "one two three one two three"
LINE = re.compile(r"[\d.]+ tokens/s \| [\d.]+ a step \| tree \d+ \(x[\d.]+\) \| \S.* \| KV \d+ of")


def test_metrics_follow_the_answer(tiny_bundle: Path) -> None:
    engine = Engine(tiny_bundle, threads=1)
    with pytest.raises(SapwoodError, match="no metrics"):
        _ = engine.metrics
    held = []
    for _ in engine.generate(PROMPT, raw=True, mode="chain", chain_length=3, max_new_tokens=40):
        now = engine.metrics
        held.append(now.kv_bytes)
        assert now.tokens_per_second > 0
        assert now.milliseconds_per_token == pytest.approx(1e3 / now.tokens_per_second)
        assert 1 <= now.accepted_length <= 4
        assert 0 <= now.tree_nodes <= 3
        assert now.branching in (0, 1), "a chain"
        assert LINE.match(now.line())
    assert held == sorted(held)
    assert held[-1] == engine.session.cache.taken * engine.session.kv_bytes_per_token
    assert now.peak_memory_bytes > held[-1]
    assert (now.mode, now.strategy, now.strategy_reason) == ("chain", "as asked", "")


def test_metrics_and_statistics_say_why_something_else_is_drafted(tiny_bundle: Path) -> None:
    engine = Engine(tiny_bundle, threads=1)
    expected = "".join(engine.generate(PROMPT, raw=True, max_new_tokens=24))
    engine.session.observe(celsius=58.0, memory_used=0.5)
    assert "".join(engine.generate(PROMPT, raw=True, max_new_tokens=24)) == expected
    now = engine.metrics
    assert (now.strategy, now.strategy_reason) == ("plain", "temperature")
    assert (now.heat, now.celsius, now.tree_nodes) == ("critical", 58.0, 0)
    assert "dynamic: plain (temperature) | 58 C" in now.line()
    assert engine.stats.strategy_changes == 1
    assert engine.stats.heat_reason == "temperature"


@pytest.mark.parametrize("strategy", ["as asked", "greedy tree", "narrow", "chain", "plain"])
def test_a_forced_strategy_says_the_same(tiny_bundle: Path, strategy: str) -> None:
    engine = Engine(tiny_bundle, threads=1)
    expected = "".join(engine.generate(PROMPT, raw=True, mode="plain", max_new_tokens=24))
    engine.session.force(strategy)
    for mode in ("chain", "fixed", "dynamic"):
        answer = engine.generate(PROMPT, raw=True, mode=mode, max_new_tokens=24)
        assert "".join(answer) == expected
        assert answer.stats.strategy == strategy
    with pytest.raises(SapwoodError, match="strategy must be one of as asked, greedy tree"):
        engine.session.force("fast")


def test_generate_shows_them_beside_the_answer(sapwood: Sapwood, tiny_bundle: Path) -> None:
    arguments = ("generate", tiny_bundle, "--prompt", PROMPT, "--raw", "--max-new-tokens", "24")
    quiet, shown = sapwood(*arguments), sapwood(*arguments, "--metrics")
    assert shown.stdout == quiet.stdout
    first, *_, last = shown.stderr.splitlines()
    assert LINE.match(first)
    assert last.startswith("24 tokens at")
    assert not any(LINE.match(line) for line in quiet.stderr.splitlines())
    report = json.loads(sapwood(*arguments, "--json").stdout)
    assert report["metrics"]["strategy"] == "as asked"
    assert report["metrics"]["kv_bytes"] > 0


def test_on_a_terminal_they_keep_to_its_last_line(tiny_bundle: Path) -> None:
    terminal = Terminal(
        "generate", str(tiny_bundle), "--prompt", PROMPT, "--raw", "--max-new-tokens", "24",
        "--metrics", kind="xterm",
    )  # fmt: skip
    try:
        terminal.wait_for(r"\x1b\[1;\d+r")
        terminal.wait_for(r"\x1b7\x1b\[\d+;1H\x1b\[2K[\d.]+ tokens/s.*?\x1b8")
        terminal.wait_for(r"\x1b\[r")
        terminal.wait_for(r"24 tokens at")
        assert terminal.status() == 0
    finally:
        terminal.close()


def test_impossible_limits_are_one_line(sapwood: Sapwood, tiny_bundle: Path) -> None:
    arguments = ("generate", tiny_bundle, "--prompt", PROMPT)
    refused(sapwood(*arguments, "--least-accepted-length", "-1"), "least-accepted-length")
    refused(sapwood(*arguments, "--target-milliseconds", "-1"), "target-milliseconds")
