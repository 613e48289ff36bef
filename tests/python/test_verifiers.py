"""Verifiers of drawn drafts through the Python face and the command line."""

from __future__ import annotations

import json
from itertools import product
from pathlib import Path
from typing import Any

import pytest

from conftest import Sapwood, drafter_options, refused
from sapwood.engine import Engine
from sapwood.errors import SapwoodError
from sapwood.options import DRAFTERS, VERIFIERS

PROMPT = "a b c d a b c d a b c"
DRAFTING = ("chain", "fixed", "dynamic")


def answer(engine: Engine, **options: Any) -> list[int]:
    generation = engine.generate(PROMPT, raw=True, **({"max_new_tokens": 60} | options))
    for _ in generation:
        pass
    return generation.token_ids


def fitting() -> list[tuple[str, str]]:
    return [pair for pair in product(VERIFIERS, DRAFTING) if pair != ("block", "fixed")]


@pytest.mark.parametrize("drafter", DRAFTERS)
def test_every_verifier_gives_the_greedy_answer(exit_bundle: Path, drafter: str) -> None:
    engine = Engine(exit_bundle, threads=1, **drafter_options(drafter, exit_bundle))
    plain = answer(engine, mode="plain")
    for verifier, mode in fitting():
        assert answer(engine, mode=mode, verifier=verifier) == plain
        assert engine.stats.verifier == verifier


def test_sampled_answers_depend_on_the_seed_alone_in_a_fresh_engine(tiny_bundle: Path) -> None:
    # Without cost curves, whose timing would choose the trees: chain and fixed.
    for verifier, mode in fitting():
        if mode == "dynamic":
            continue
        options = {"mode": mode, "verifier": verifier, "temperature": 1.0}
        first, again = (answer(Engine(tiny_bundle, threads=1), seed=4, **options) for _ in range(2))
        assert first == again
        assert first != answer(Engine(tiny_bundle, threads=1), seed=5, **options)


def test_slots_beyond_the_text_are_counted(tiny_bundle: Path) -> None:
    engine = Engine(tiny_bundle, threads=1)
    for verifier, mode in fitting():
        answer(engine, mode=mode, verifier=verifier, temperature=0.7, fixed_nodes=6)
        stats = engine.stats
        assert 0 <= stats.mean_draft_slots <= stats.peak_draft_slots
        assert stats.mean_draft_slots == stats.drafted_tokens / stats.steps
        if mode == "fixed":
            assert stats.peak_draft_slots <= 6
    answer(engine, mode="plain")
    assert engine.stats.peak_draft_slots == 0


def test_beta_is_tuned_only_where_it_was_asked_for(tiny_bundle: Path) -> None:
    engine = Engine(tiny_bundle, threads=1)
    answer(engine, verifier="traversal", temperature=1.5, beta=0.4)
    assert engine.stats.beta == pytest.approx(0.4)
    answer(engine, verifier="traversal", temperature=1.5, beta=0.4, adapt=True)
    assert engine.stats.beta != pytest.approx(0.4)


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"verifier": "typical"}, "verifier: must be one of target_draw, rejection"),
        ({"verifier": "block", "mode": "fixed"}, "judges chains"),
        ({"beta": 1.5}, "beta: must be at most 1"),
        ({"length_rule": "mood"}, "length_rule: must be one of window, entropy"),
    ],
)
def test_what_does_not_fit_is_refused(
    tiny_bundle: Path, options: dict[str, Any], message: str
) -> None:
    with pytest.raises(SapwoodError, match=message):
        answer(Engine(tiny_bundle, threads=1), **options)


def test_the_command_takes_a_verifier_and_says_what_it_means(
    sapwood: Sapwood, tiny_bundle: Path
) -> None:
    command = ("generate", tiny_bundle, "--raw", "--prompt", PROMPT, "--threads", "1", "--json")
    result = sapwood(*command, "--verifier", "traversal", "--temperature", "0.8", "--adapt")
    assert result.returncode == 0, result.stderr
    assert json.loads(result.stdout)["stats"]["verifier"] == "traversal"
    refused(sapwood(*command, "--verifier", "block", "--mode", "fixed"), "judges chains")
    help_text = sapwood("generate", "--help", environment={"COLUMNS": "200"}).stdout
    assert "depends on the drafts" in " ".join(help_text.replace("│", " ").split())


def test_a_suite_with_another_verifier_counts_ids_and_calls_them_no_error(
    sapwood: Sapwood, tiny_bundle: Path, tmp_path: Path
) -> None:
    questions = tmp_path / "questions.jsonl"
    questions.write_text(json.dumps({"question_id": 1, "category": "qa", "turns": [PROMPT]}))
    command = ("bench", "suite", tiny_bundle, "--suite", questions, "--threads", "1")
    sampled = (*command, "--verifier", "rejection", "--temperature", "1", "--json")
    result = sapwood(*sampled)
    assert result.returncode == 0, result.stderr
    report = json.loads(result.stdout)
    assert report["ids_must_agree"] is False
    for mode in report["modes"].values():
        assert 0 <= mode["mean_draft_slots"] <= mode["peak_draft_slots"]
    greedy = sapwood(*command, "--verifier", "rejection", "--json")
    assert greedy.returncode == 0, greedy.stderr
    assert json.loads(greedy.stdout)["equal_tokens"] is True
