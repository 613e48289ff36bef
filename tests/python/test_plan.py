"""``sapwood plan``: worked cases by hand, what must hold of every plan, and the command."""

from __future__ import annotations

import functools
import json
import math
import subprocess
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import hypothesis
import pytest
from hypothesis import settings
from hypothesis import strategies as st

from conftest import Sapwood, refused
from sapwood.cli.plan_sources import Given, gather
from sapwood.cost_cache import CostKey, save_costs
from sapwood.drafting import SHIPPED
from sapwood.errors import SapwoodError
from sapwood.manifest import read_manifest
from sapwood.options import HostOptions
from sapwood.plan import (
    CostCurve,
    Costs,
    accepted_tokens,
    best,
    break_even,
    by_depth,
    constant,
    steps,
)
from tiny_drafts import write_tiny_draft

Command = Callable[..., "subprocess.CompletedProcess[str]"]

probability = st.floats(0, 1)
price = st.floats(0, 3)
EXACT = {"rel": 1e-12, "abs": 1e-12}


@st.composite
def curves(draw: st.DrawFn) -> CostCurve:
    """Measured costs of 1 to 17 rows; like real ones, they need not rise everywhere."""
    costs = draw(st.lists(st.floats(0.5, 8), min_size=17, max_size=17))
    return CostCurve(tuple(enumerate(costs, 1)))


@st.composite
def costs(draw: st.DrawFn) -> Costs:
    first = draw(st.none() | price)
    return Costs(draw(price), first, draw(st.booleans()), draw(price), draw(curves()))


def test_the_worked_case_of_the_mathematics_comes_out() -> None:
    # a = 0.8, r = 0.1, g = 4: 0.8 + 0.64 + 0.512 + 0.4096 accepted, over 4 * 0.1 + 1.
    step = steps(constant(0.8, 4), Costs(0.1))[4]
    assert step.accepted == pytest.approx(2.3616, **EXACT)
    assert step.tokens == pytest.approx(3.3616, **EXACT)
    assert step.cost == pytest.approx(1.4, **EXACT)
    assert step.speedup == pytest.approx(3.3616 / 1.4, **EXACT)
    assert round(step.speedup, 3) == 2.401


def test_a_verify_pass_that_costs_more_rows_divides_by_its_cost() -> None:
    # The same with a pass over the 5 rows at 1.5, and a tenth of overhead: over 0.4 + 1.5 + 0.1.
    costs = Costs(0.1, overhead=0.1, verify=CostCurve(((1, 2.0), (5, 3.0))))
    assert steps(constant(0.8, 4), costs)[4].speedup == pytest.approx(3.3616 / 2.0, **EXACT)
    # In between: 2 rows are a quarter of the way, 1.125; over 0.1 + 1.125 + 0.1.
    assert steps(constant(0.8, 4), costs)[1].speedup == pytest.approx(1.8 / 1.325, **EXACT)


def test_the_best_length_is_where_the_next_guess_no_longer_pays() -> None:
    # a = 1/2, r = 1/8, flat: 1.5 / 1.125, 1.75 / 1.25, 1.875 / 1.375, 1.9375 / 1.5.
    found = [step.speedup for step in steps(constant(0.5, 4), Costs(0.125))]
    assert found == pytest.approx([1, 4 / 3, 1.4, 15 / 11, 31 / 24], **EXACT)
    assert best(constant(0.5, 4), Costs(0.125)).length == 2
    # A jump of the curve at 3 rows makes one guess the best: 1.5 / 1.125 over 1.75 / 1.75.
    jump = CostCurve(((1, 1.0), (2, 1.0), (3, 1.5), (5, 1.5)))
    assert best(constant(0.5, 4), Costs(0.125, verify=jump)).length == 1


def test_acceptance_that_falls_with_depth_is_summed_as_the_mathematics_says() -> None:
    # a0 = 0.8, b = 0.5: 0.8 + 0.8 * 0.4 + 0.8 * 0.4 * 0.2.
    assert accepted_tokens(constant(0.8, 3, 0.5)) == pytest.approx(1.184, **EXACT)
    a, b = 0.7, 0.9
    closed = sum(a**i * b ** (i * (i - 1) / 2) for i in range(1, 7))
    assert accepted_tokens(constant(a, 6, b)) == pytest.approx(closed, **EXACT)
    assert by_depth([0.5, 0.4], 4) == [0.5, 0.4, 0.4, 0.4]


def test_the_passes_of_a_draft_are_those_of_its_kind() -> None:
    head = Costs(0.1, first_draft=0.3)
    assert [head.drafting(length) for length in range(4)] == pytest.approx([0, 0.3, 0.4, 0.5])
    assert [replace(head, one_pass=True).drafting(length) for length in (0, 1, 5)] == [0, 0.3, 0.3]


def test_break_even_is_where_one_guess_pays_for_itself() -> None:
    # Flat, r = 0.2: one guess pays from 1 + a > 1.2; longer chains only for more.
    assert break_even(Costs(0.2), 8) == pytest.approx(0.2, abs=1e-8)
    # Free guesses, free rows: any acceptance above 0 pays.
    assert break_even(Costs(0.0), 8) == pytest.approx(0.0, abs=1e-8)
    # Even ten right guesses do not pay for passes as dear as the target's.
    assert break_even(Costs(1.0, overhead=0.1), 10) is None


@settings(max_examples=60, deadline=None)
@hypothesis.given(probability, st.integers(1, 16))
def test_the_closed_forms_hold_for_every_length(acceptance: float, length: int) -> None:
    accepted = accepted_tokens(constant(acceptance, length))
    if acceptance > 0.999:
        assert accepted <= length + 1e-9
        return
    closed = acceptance * (1 - acceptance**length) / (1 - acceptance)
    assert accepted == pytest.approx(closed, rel=1e-9, abs=1e-12)


@settings(max_examples=60, deadline=None)
@hypothesis.given(st.lists(st.tuples(probability, probability), min_size=1, max_size=16), costs())
def test_more_acceptance_at_any_depth_never_makes_a_plan_slower(
    pairs: list[tuple[float, float]], costs: Costs
) -> None:
    worse, better = ([pick(pair) for pair in pairs] for pick in (min, max))
    for low, high in zip(steps(worse, costs), steps(better, costs), strict=True):
        assert low.speedup <= high.speedup * (1 + 1e-12)
    assert best(worse, costs).speedup <= best(better, costs).speedup * (1 + 1e-12)


@settings(max_examples=60, deadline=None)
@hypothesis.given(st.lists(probability, min_size=1, max_size=16), costs())
def test_a_plan_is_never_slower_than_not_speculating(acceptance: list[float], costs: Costs) -> None:
    found = best(acceptance, costs)
    assert found.speedup >= 1
    assert found.length > 0 or found.speedup == 1
    every = steps(acceptance, costs)
    assert found.speedup == max(step.speedup for step in every)
    # Of equals the shortest.
    assert all(step.speedup < found.speedup for step in every[: found.length])


@settings(max_examples=40, deadline=None)
@hypothesis.given(costs(), st.floats(0.001, 1))
def test_dearer_drafts_are_never_worth_more(costs: Costs, extra: float) -> None:
    acceptance = constant(0.7, 16)
    first = None if costs.first_draft is None else costs.first_draft + extra
    dearer = replace(costs, draft=costs.draft + extra, first_draft=first)
    assert best(acceptance, dearer).speedup <= best(acceptance, costs).speedup
    below, above = break_even(costs, 16), break_even(dearer, 16)
    assert above is None or (below is not None and below <= above + 1e-8)


@settings(max_examples=40, deadline=None)
@hypothesis.given(costs())
def test_break_even_parts_what_pays_from_what_does_not(costs: Costs) -> None:
    threshold = break_even(costs, 8)
    if threshold is None:
        assert best(constant(1, 8), costs).length == 0
        return
    assert best(constant(threshold, 8), costs).length > 0 or threshold == 0
    if threshold > 1e-6:
        assert best(constant(threshold - 1e-6, 8), costs).length == 0


@pytest.mark.parametrize(
    "points",
    [(), ((2, 1.0),), ((1, 1.0), (1, 2.0)), ((1, 1.0), (3, 2.0), (2, 3.0)), ((1, 0.0),),
     ((1, 1.0), (2, -1.0)), ((1, math.nan),), ((1, math.inf),)],
)  # fmt: skip
def test_points_that_are_no_curve_are_refused(points: tuple[tuple[int, float], ...]) -> None:
    with pytest.raises(ValueError, match=r"ascend|above 0"):
        CostCurve(points)


def test_a_curve_is_not_read_beyond_its_end() -> None:
    curve = CostCurve(((1, 1.0), (4, 2.0)))
    assert curve.most_rows == 4
    with pytest.raises(ValueError, match="5 rows"):
        curve.at(5)


# ---- the command ------------------------------------------------------------------------------


@pytest.fixture
def command(sapwood_here: Sapwood) -> Command:
    return functools.partial(sapwood_here, "plan")


def planned(command: Command, *arguments: str | Path) -> dict[str, Any]:
    result = command(*arguments, "--json")
    assert result.returncode == 0, result.stderr
    return json.loads(result.stdout)  # type: ignore[no-any-return]


def test_the_command_plans_from_numbers(command: Command) -> None:
    report = planned(command, "--acceptance", "0.8", "--draft-cost", "0.1", "--longest", "4")
    assert [step["length"] for step in report["steps"]] == [0, 1, 2, 3, 4]
    assert report["steps"][4]["speedup"] == pytest.approx(3.3616 / 1.4, **EXACT)
    assert report["best"] == report["steps"][4]
    assert report["speculate"] is True
    assert report["target_row_ms"] is None
    curve = ("--cost-curve", "1:2,5:3", "--overhead", "0.1")
    report = planned(command, "--acceptance", "0.8", "--draft-cost", "0.1", *curve)
    assert len(report["steps"]) == 5  # as far as the curve goes
    assert report["steps"][4]["speedup"] == pytest.approx(3.3616 / 2, **EXACT)
    by_depth = ("--acceptance", "0.8,0.4,0.2", "--longest", "3")
    halved = ("--acceptance", "0.8", "--decay", "0.5", "--longest", "3")
    report = planned(command, *by_depth, "--draft-cost", "0.1")
    assert report["steps"][3]["accepted"] == pytest.approx(1.184, **EXACT)
    assert planned(command, *halved, "--draft-cost", "0.1")["steps"] == report["steps"]


def test_people_get_a_table_and_what_to_do(command: Command) -> None:
    good = command("--acceptance", "0.8", "--draft-cost", "0.1", "--longest", "4")
    assert good.returncode == 0, good.stderr
    assert "2.401x" in good.stdout
    assert "Draft 4 tokens a step: 2.40x" in good.stdout
    bad = command("--acceptance", "0.1", "--draft-cost", "0.5")
    assert "Do not speculate" in bad.stdout
    never = command("--acceptance", "0.9", "--draft-cost", "1.5")
    assert "no acceptance would pay" in never.stdout


@pytest.fixture
def figures(tmp_path: Path) -> Path:
    """What ``bench draft --json`` prints, as far as a plan reads it."""
    path = tmp_path / "figures.json"
    passes = [("text", 1, 0.2), ("text", 2, 0.25), ("text", 4, 0.5), ("nodes", 1, 0.125)]
    depths = [(0.5, 0.6), (0.25, 0.5), (None, 0.4)]
    document = {
        "kind": "head",
        "by_depth": [{"greedy_after_right": a, "sampled": b} for a, b in depths],
        "cost": {
            "target_row_ms": 4.0,
            "passes": [{"over": o, "rows": r, "of_target_row": c} for o, r, c in passes],
        },
    }
    path.write_text(json.dumps(document))
    return path


def test_a_plan_from_measured_figures(command: Command, figures: Path) -> None:
    flat = ("--figures", figures, "--cost-curve", "1:1,4:1")
    report = planned(command, *flat)
    assert report["acceptance"] == [0.5, 0.25, 0.25]
    assert report["steps"][2]["cost"] == pytest.approx(0.25 + 0.125 + 1, **EXACT)
    assert report["steps"][2]["tokens"] == pytest.approx(1.625, **EXACT)
    assert report["target_row_ms"] == 4.0
    assert planned(command, *flat, "--sampled")["acceptance"] == [0.6, 0.5, 0.4]
    assert planned(command, *flat, "--draft-cost", "0")["steps"][2]["cost"] == 1.0
    document = json.loads(figures.read_text()) | {"kind": "parallel-heads"}
    figures.write_text(json.dumps(document))
    assert planned(command, *flat)["steps"][2]["cost"] == pytest.approx(1.25, **EXACT)


def test_a_plan_from_a_measured_bundle(
    command: Command, tiny_bundle: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    numbers = ("--acceptance", "0.5", "--draft-cost", "0.125", "--threads", "1")
    refused(command(tiny_bundle, *numbers), "sapwood tune", "--cost-curve")
    key = CostKey.of(read_manifest(tiny_bundle), host="native", threads=1, kv="float16")
    save_costs(key, [128, 1024], [1, 2, 4], [[2.0, 2.0, 3.0], [4.0, 4.0, 8.0]])
    report = planned(command, tiny_bundle, *numbers)
    assert report["target_row_ms"] == pytest.approx(2.0)
    costs = Costs(0.125, verify=CostCurve(((1, 2.0), (2, 2.0), (4, 3.0))))
    expected = [step.speedup for step in steps(constant(0.5, 3), costs)]
    assert [step["speedup"] for step in report["steps"]] == pytest.approx(expected, rel=1e-6)
    long = planned(command, tiny_bundle, *numbers, "--context", "1024")
    assert long["steps"][3]["cost"] == pytest.approx(0.375 + 2.0, rel=1e-6)
    # What the bundle does not say is asked for: the tiny model's draft has never been trained.
    refused(command(tiny_bundle, "--threads", "1"), "--acceptance", "--figures")
    draft = write_tiny_draft(tmp_path / "draft", tiny_bundle)
    refused(command(tiny_bundle, "--draft", draft, "--threads", "1"), "--figures")


def test_the_shipped_drafts_manifest_is_enough_for_a_plan() -> None:
    for folder in sorted(path for path in SHIPPED.iterdir() if path.is_dir()):
        manifest = read_manifest(folder)
        found = gather(given(draft=folder, cost_curve="1:1,2:1,8:1.6"))
        held_out = [
            each["top_after_right"] for each in manifest["training"]["held_out"]["by_depth"]
        ]
        assert found.acceptance[: len(held_out)] == held_out
        assert 0 < found.costs.draft < 1
        sampled = gather(given(draft=folder, cost_curve="1:1,8:2", sampled=True)).acceptance
        assert sampled != found.acceptance


def given(**changes: Any) -> Given:
    """What ``sapwood plan`` without options is given, but for these."""
    nothing = Given(None, None, 1, None, None, 0, None, None, False, 128, None, HostOptions())
    return replace(nothing, **changes)


@pytest.mark.parametrize(
    ("arguments", "parts"),
    [
        (("--acceptance", "1.2", "--draft-cost", "0.1"), ("--acceptance 1.2",)),
        (("--acceptance", "nan", "--draft-cost", "0.1"), ("--acceptance nan",)),
        (("--acceptance", "high", "--draft-cost", "0.1"), ("--acceptance high",)),
        (("--acceptance", "0.8,", "--draft-cost", "0.1"), ("--acceptance",)),
        (("--acceptance", "0.8"), ("--draft-cost",)),
        (("--acceptance", "0.8", "--draft-cost", "-1"), ("--draft-cost -1",)),
        (("--acceptance", "0.8", "--draft-cost", "nan"), ("--draft-cost nan",)),
        (("--acceptance", "0.8", "--draft-cost", "0", "--overhead", "inf"), ("--overhead",)),
        (("--acceptance", "0.8", "--draft-cost", "0", "--decay", "0"), ("--decay 0",)),
        (("--acceptance", "0.8,0.7", "--draft-cost", "0", "--decay", "0.9"), ("--decay",)),
        (("--acceptance", "0.8", "--draft-cost", "0", "--cost-curve", "2:1"), ("ascend from 1",)),
        (("--acceptance", "0.8", "--draft-cost", "0", "--cost-curve", "1:0"), ("above 0",)),
        (("--acceptance", "0.8", "--draft-cost", "0", "--cost-curve", "1;2"), ("ROWS:COST",)),
        (
            (
                "--acceptance",
                "0.8",
                "--draft-cost",
                "0",
                "--cost-curve",
                "1:1,4:2",
                "--longest",
                "4",
            ),
            ("--longest 4", "at most 3", "4 rows"),
        ),
        (("--acceptance", "0.8", "--draft-cost", "0", "--plot", "plan.txt"), (".png",)),
        (("--figures", "absent.json", "--cost-curve", "1:1,2:1"), ("absent.json",)),
        (("absent-bundle",), ("absent-bundle",)),
    ],
)
def test_what_cannot_be_planned_is_one_line(
    command: Command, arguments: tuple[str, ...], parts: tuple[str, ...]
) -> None:
    refused(command(*arguments), *parts)


@pytest.mark.parametrize(
    "text",
    ["", "[]", "{", '{"cost": {"passes": []}}', '{"cost": {"passes": [{"over": "text"}]}}'],
)
def test_a_file_that_holds_no_figures_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "figures.json"
    path.write_text(text)
    with pytest.raises(SapwoodError, match=r"figures\.json: not what"):
        gather(given(figures=path, cost_curve="1:1,4:1"))


def test_figures_that_cannot_be_are_refused(figures: Path) -> None:
    document = json.loads(figures.read_text())
    document["by_depth"][0]["greedy_after_right"] = 1.5
    figures.write_text(json.dumps(document))
    with pytest.raises(SapwoodError, match=r"figures\.json"):
        gather(given(figures=figures, cost_curve="1:1,4:1"))


def test_a_plan_is_drawn_and_its_best_length_marked(command: Command, tmp_path: Path) -> None:
    pytest.importorskip("matplotlib")
    picture = tmp_path / "plan.png"
    planned(command, "--acceptance", "0.8", "--draft-cost", "0.1", "--plot", picture)
    assert picture.read_bytes().startswith(b"\x89PNG")
    missing = tmp_path / "absent" / "plan.png"
    refused(command("--acceptance", "1", "--draft-cost", "0", "--plot", missing), "absent")
