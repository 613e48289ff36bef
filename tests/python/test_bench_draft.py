"""``sapwood bench draft``: its figures from made-up comparisons, and a run over a tiny draft."""

from __future__ import annotations

import json
from dataclasses import dataclass
from pathlib import Path

import pytest

from conftest import Sapwood, refused
from sapwood.cli.bench.draft_figures import by_depth, calibration, chain_length, summary
from tiny_drafts import write_tiny_draft


@dataclass(frozen=True)
class Row:
    position: int
    depth: int
    same_top: bool
    covered: bool = True
    overlap: float = 0.5
    entropy: float = 1.0
    uncertainty: float | None = None


# A text: from 5, right at all depths; from 6, wrong at once; from 7 right, then wrong.
TEXT = [
    Row(5, 1, True, overlap=0.9),
    Row(6, 2, True, overlap=0.8),
    Row(6, 1, False, covered=False, overlap=0.1),
    Row(7, 2, True, overlap=0.2),
    Row(7, 1, True, overlap=0.8),
    Row(8, 2, False, overlap=0.4),
]
# Another, where everything is wrong at the same positions.
WRONG = [Row(row.position, row.depth, False, overlap=0.0) for row in TEXT]


def test_acceptance_is_counted_by_depth_and_after_what_was_right() -> None:
    first, second = by_depth([TEXT])
    assert first["rows"] == second["rows"] == 3
    assert first["greedy"] == first["greedy_after_right"] == pytest.approx(2 / 3)
    assert first["sampled"] == pytest.approx(0.6)
    assert second["greedy"] == pytest.approx(2 / 3)
    assert second["greedy_after_right"] == pytest.approx(1 / 2)  # not the one from 6
    assert chain_length([TEXT]) == pytest.approx((3 + 1 + 2) / 3)
    whole = summary([TEXT])
    assert whole["tokens"] == 3
    assert whole["covered"] == pytest.approx(2 / 3)


def test_texts_are_not_mixed_up_where_their_positions_are_the_same() -> None:
    first, second = by_depth([WRONG, TEXT])
    assert first["greedy"] == pytest.approx(2 / 6)
    assert second["greedy_after_right"] == pytest.approx(1 / 2)
    assert chain_length([WRONG, TEXT]) == pytest.approx((3 + (3 + 1 + 2)) / 6)


def test_calibration_weighs_bins_by_their_size() -> None:
    assert calibration([TEXT]) is None
    told = [
        Row(1, 1, True, overlap=0.9, uncertainty=0.12),
        Row(2, 1, True, overlap=0.7, uncertainty=0.18),
        Row(3, 1, True, overlap=0.0, uncertainty=1.0),
        Row(4, 1, True, overlap=0.5, uncertainty=0.95),
    ]
    found = calibration([told[:1], told[1:]])
    assert found is not None
    assert [each["count"] for each in found["bins"]] == [2, 2]
    assert found["bins"][0]["predicted"] == pytest.approx(0.15)
    assert found["bins"][0]["seen"] == pytest.approx(0.2)
    expected = (2 * 0.05 + 2 * (0.975 - 0.75)) / 4
    assert found["expected_calibration_error"] == pytest.approx(expected)


@pytest.fixture
def suite_file(tmp_path: Path) -> Path:
    path = tmp_path / "suite.jsonl"
    lines = [
        {"question_id": number, "category": category, "turns": ["a b c d a b c"]}
        for number, category in enumerate(("letters", "words"))
    ]
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    return path


@pytest.mark.parametrize("kind", ["head", "parallel_heads"])
def test_a_run_reports_every_figure(
    sapwood: Sapwood, tiny_bundle: Path, tmp_path: Path, suite_file: Path, kind: str
) -> None:
    draft = write_tiny_draft(tmp_path / "draft", tiny_bundle, kind=kind)
    arguments = ("bench", "draft", tiny_bundle, "--draft", draft, "--suite", suite_file)
    short = ("--max-new-tokens", "12", "--depths", "3", "--repeats", "2", "--threads", "1")
    run = sapwood(*arguments, *short, "--json")
    assert run.returncode == 0, run.stderr
    report = json.loads(run.stdout)
    assert report["kind"] == kind.replace("_", "-")
    assert set(report["by_category"]) == {"letters", "words"}
    assert report["tokens"] == 24
    assert [each["depth"] for each in report["by_depth"]] == [1, 2, 3]
    assert [each["rows"] for each in report["by_depth"]] == [24, 22, 20]
    assert 0 < report["by_depth"][0]["sampled"] < 1
    assert 0 <= report["calibration"]["expected_calibration_error"] <= 1
    assert report["calibration"]["rows"] == 66
    over = [(each["over"], each["rows"]) for each in report["cost"]["passes"]]
    assert over == [("text", 1), ("text", 2), ("text", 4)] + [
        ("nodes", n) for n in (1, 2, 4, 8, 16)
    ]
    assert all(each["ms"] > 0 for each in report["cost"]["passes"])
    shown = sapwood(*arguments, *short)
    assert "expected calibration error" in shown.stdout
    assert "over guesses" in shown.stdout


def test_without_a_draft_or_a_network_it_says_so(
    sapwood: Sapwood, tiny_bundle: Path, tmp_path: Path, suite_file: Path
) -> None:
    arguments = ("bench", "draft", tiny_bundle, "--suite", suite_file, "--max-new-tokens", "4")
    refused(sapwood(*arguments), "--draft")
    pytest.importorskip("matplotlib")
    draft = write_tiny_draft(tmp_path / "draft", tiny_bundle, units=0)
    picture = tmp_path / "draft.png"
    refused(sapwood(*arguments, "--draft", draft, "--plot", picture), "no uncertainty network")
    assert not picture.exists()
