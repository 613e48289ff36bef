"""Drafters through the Python face: the same answers from all, and what they learn is kept."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from conftest import drafter_options
from sapwood import _runtime
from sapwood.engine import Engine
from sapwood.errors import SapwoodError
from sapwood.options import DRAFTERS, MODES

PROMPT = "a b c d a b c d a b c"


@pytest.fixture(scope="module")
def tiny(tiny_bundle: Path) -> _runtime.Model:
    return _runtime.open_native_model(str(tiny_bundle), threads=1)


def answer(engine: Engine, **options: Any) -> list[int]:
    generation = engine.generate(PROMPT, raw=True, max_new_tokens=60, **options)
    for _ in generation:
        pass
    return generation.token_ids


def test_the_names_of_both_faces_are_the_same() -> None:
    assert list(DRAFTERS) == _runtime.drafter_names()


@pytest.mark.parametrize("drafter", DRAFTERS)
@pytest.mark.parametrize("options", [{}, {"temperature": 0.9, "seed": 5, "top_p": 0.9}])
def test_every_drafter_gives_the_plain_answer_in_every_mode(
    exit_bundle: Path, drafter: str, options: dict[str, Any]
) -> None:
    plain = answer(Engine(exit_bundle, threads=1, drafter="none"), mode="plain", **options)
    engine = Engine(exit_bundle, threads=1, **drafter_options(drafter, exit_bundle))
    for mode in MODES:
        assert answer(engine, mode=mode, **options) == plain
        assert engine.stats.drafter == drafter
        if drafter == "none":
            assert engine.stats.drafted_tokens == 0


def test_what_an_answer_taught_is_kept_until_the_engine_forgets(tiny_bundle: Path) -> None:
    engine = Engine(tiny_bundle, threads=1, drafter="successor")
    answer(engine, mode="chain")
    cold = engine.stats.steps
    answer(engine, mode="chain")
    assert engine.stats.steps < cold
    engine.forget()
    answer(engine, mode="chain")
    assert engine.stats.steps == cold


def test_an_unknown_drafter_is_named(tiny_bundle: Path, tiny: _runtime.Model) -> None:
    with pytest.raises(SapwoodError, match="oracle"):
        Engine(tiny_bundle, drafter="oracle")
    with pytest.raises(SapwoodError, match="oracle"):
        _runtime.Session.create(tiny, context_length=64, drafter="oracle")


def test_rows_that_cost_too_much_are_not_drafted(tiny: _runtime.Model) -> None:
    dear = _runtime.CostGrid([100], [1, 2, 32], [[1.0, 2.5, 40.0]])
    session = _runtime.Session.create(
        tiny, context_length=256, measured_costs=dear, learn_costs=False
    )
    session.start([5, 6, 7, 5, 6, 7, 5, 6], mode="dynamic", max_new_tokens=40)
    while session.step():
        pass
    assert session.stats.cost_curve == "tuned"
    assert session.stats.drafted_tokens == 0


def test_costs_of_a_tree_are_measured_by_part() -> None:
    cost = _runtime.tree_cost("mix", vocabulary=500, nodes=8, rounds=20)
    assert cost.nodes == 8
    for part in ("grow", "layout", "verify", "follow", "observe", "select_row"):
        assert getattr(cost, part) >= 0
    assert cost.grow > 0
    with pytest.raises(SapwoodError, match="nodes"):
        _runtime.tree_cost("mix", vocabulary=500, nodes=0, rounds=20)
