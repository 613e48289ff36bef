"""``sapwood verify``: the exactness report, as a twin of tests/cpp/exactness_test.cc."""

from __future__ import annotations

import json

import pytest

from conftest import Sapwood, refused
from sapwood import _runtime
from sapwood.errors import SapwoodError

RESULT_KEYS = {"name", "lossless", "deviation", "expected_accepted", "optimum"}


def test_the_report_proves_every_verifier_and_shows_the_ablations(sapwood: Sapwood) -> None:
    result = sapwood("verify", "--json", "--models", "1", "--comparisons", "20")
    assert result.returncode == 0, result.stderr
    report = json.loads(result.stdout)
    rows = report["results"]
    assert all(set(row) == RESULT_KEYS for row in rows)
    lossless = [row for row in rows if row["lossless"]]
    assert max(row["deviation"] for row in lossless) <= 1e-12
    assert report["largest_deviation"] <= report["tolerance"] == 1e-12
    assert all(row["expected_accepted"] <= row["optimum"] + 1e-9 for row in lossless)
    ablations = [row for row in rows if not row["lossless"]]
    assert {row["name"].split("/")[0] for row in ablations} == {
        "ablation: published scale-and-mask",
        "ablation: drawn children dropped",
    }
    assert all(row["deviation"] > 0.02 for row in ablations)
    for verifier in ("target_draw", "rejection", "block", "traversal"):
        assert any(row["name"].startswith(f"{verifier}/") for row in lossless)
    trees, chains = report["trees"], report["chains"]
    assert trees["naive_multi_round"] < trees["rejection"] <= trees["traversal"]
    assert trees["traversal"] <= trees["optimum"] + 1e-9
    assert chains["block"] == pytest.approx(chains["optimum"], abs=1e-9)
    assert chains["least_gain_of_block"] >= -1e-12


def test_people_get_a_table(sapwood: Sapwood) -> None:
    arguments = ("--models", "1", "--comparisons", "2", "--nodes", "2", "--vocabulary", "2")
    result = sapwood("verify", *arguments)
    assert result.returncode == 0, result.stderr
    assert "traversal/tree" in result.stdout
    assert "largest deviation of a lossless combination" in result.stdout


def test_sizes_that_cannot_be_enumerated_are_refused(sapwood: Sapwood) -> None:
    refused(sapwood("verify", "--vocabulary", "50"), "--vocabulary")
    with pytest.raises(SapwoodError, match="depth is 9; it must be between 1 and 3"):
        _runtime.exactness_report(depth=9)


def test_a_deeper_report_stays_exact() -> None:
    rows = _runtime.exactness_report(vocabulary=3, depth=3, nodes=5, models=1)
    assert max(row.deviation for row in rows if row.lossless) <= _runtime.EXACT_TOLERANCE
