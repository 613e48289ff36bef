"""``sapwood tune`` and the cache it writes: found again, and nothing else taken for it."""

from __future__ import annotations

import dataclasses
import json
from pathlib import Path

import pytest

from conftest import Sapwood, refused
from sapwood import _runtime
from sapwood.cost_cache import CostKey, load_costs, save_costs
from sapwood.engine import Engine
from sapwood.errors import SapwoodError
from sapwood.manifest import read_manifest
from sapwood.survey_cache import load_survey, survey_path

CONTEXTS, ROWS = [128, 1024], [1, 8]
MILLISECONDS = [[1.0, 2.0], [3.0, 6.0]]


@pytest.fixture(autouse=True)
def own_cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))


@pytest.fixture
def key(tiny_bundle: Path) -> CostKey:
    return CostKey.of(read_manifest(tiny_bundle), host="native", threads=1, kv="float16")


def test_what_was_saved_is_loaded(key: CostKey) -> None:
    assert load_costs(key) is None
    path = save_costs(key, CONTEXTS, ROWS, MILLISECONDS)
    assert path == key.path()
    costs = load_costs(key)
    assert costs is not None
    assert costs.at(128).milliseconds(8) == pytest.approx(2.0)
    assert costs.at(576).milliseconds(1) == pytest.approx(2.0)
    assert [entry.name for entry in path.parent.iterdir()] == [path.name]


@pytest.mark.parametrize("field", [f.name for f in dataclasses.fields(CostKey)])
def test_a_curve_of_something_else_is_not_used(key: CostKey, field: str) -> None:
    value = 7 if field == "threads" else "another"
    other = dataclasses.replace(key, **{field: value})
    save_costs(other, CONTEXTS, ROWS, MILLISECONDS)
    assert load_costs(key) is None
    # Even where it lies under this one's name.
    other.path().replace(key.path())
    assert load_costs(key) is None


@pytest.mark.parametrize(
    "change",
    [
        {"schema_version": 99},
        {"milliseconds": [[1.0, 2.0]]},
        {"milliseconds": [[1.0, -2.0], [3.0, 6.0]]},
        {"milliseconds": "fast"},
        {"rows": [8, 1]},
        {"contexts": None},
    ],
)
def test_a_stale_or_damaged_curve_counts_as_none(key: CostKey, change: dict[str, object]) -> None:
    path = save_costs(key, CONTEXTS, ROWS, MILLISECONDS)
    document = json.loads(path.read_text())
    path.write_text(json.dumps({**document, **change}))
    assert load_costs(key) is None


@pytest.mark.parametrize("text", ["", "{", "[]", "null", '{"key": 3}', "\x00\x01"])
def test_a_file_that_is_no_curve_counts_as_none(key: CostKey, text: str) -> None:
    path = save_costs(key, CONTEXTS, ROWS, MILLISECONDS)
    path.write_text(text)
    assert load_costs(key) is None


def test_measurements_that_cannot_be_are_not_saved(key: CostKey) -> None:
    with pytest.raises(SapwoodError, match="measur"):
        save_costs(key, CONTEXTS, ROWS, [[1.0, 2.0], [0.0, 1.0]])
    assert not key.path().exists()


def test_an_engine_says_where_its_costs_come_from(tiny_bundle: Path, key: CostKey) -> None:
    learned = Engine(tiny_bundle, threads=1)
    for _ in learned.generate("hello", max_new_tokens=4):
        pass
    assert learned.stats.cost_curve == "learned"
    save_costs(key, CONTEXTS, ROWS, MILLISECONDS)
    tuned = Engine(tiny_bundle, threads=1)
    for _ in tuned.generate("hello", max_new_tokens=4):
        pass
    assert tuned.stats.cost_curve == "tuned"
    assert Engine(tiny_bundle, threads=2).measured_costs is None


def test_tune_writes_what_an_engine_of_the_bundle_finds(
    sapwood: Sapwood, tiny_bundle: Path, key: CostKey
) -> None:
    result = sapwood("tune", tiny_bundle, "--threads", "1", "--repeats", "1", "--json")
    assert result.returncode == 0, result.stderr
    report = json.loads(result.stdout)
    assert report["path"] == str(key.path())
    assert report["device"] == dataclasses.asdict(key)
    assert len(report["milliseconds"]) == len(report["contexts"])
    assert all(len(line) == len(report["rows"]) for line in report["milliseconds"])
    assert report["rows"][0] == 1
    assert report["rows"][-1] == 32
    assert load_costs(key) is not None
    assert _runtime.active_kernels() == key.kernels
    assert report["survey"] == str(survey_path(read_manifest(tiny_bundle)))


def test_what_the_target_said_after_every_token_gives_the_first_step_something_to_guess(
    sapwood: Sapwood, tiny_bundle: Path
) -> None:
    command = ("tune", tiny_bundle, "--threads", "1", "--repeats", "1", "--json")
    assert json.loads(sapwood(*command, "--no-survey").stdout)["survey"] is None
    manifest = read_manifest(tiny_bundle)
    assert load_survey(manifest) is None
    without = Engine(tiny_bundle, threads=1, mode="chain", drafter="successor")
    for _ in without.generate("hello", max_new_tokens=2):
        pass
    assert without.stats.drafted_tokens == 0
    expected = "".join(without.generate("hello", max_new_tokens=12))

    assert sapwood(*command).returncode == 0
    survey = load_survey(manifest)
    assert survey is not None
    assert len(survey) == manifest["target"]["spec"]["vocabulary_size"]
    surveyed = Engine(tiny_bundle, threads=1, mode="chain", drafter="successor")
    assert "".join(surveyed.generate("hello", max_new_tokens=12)) == expected
    surveyed.forget()
    for _ in surveyed.generate("hello", max_new_tokens=2):
        pass
    assert surveyed.stats.drafted_tokens > 0
    Engine(tiny_bundle, threads=1, drafter="ngram")  # takes no table, and opens all the same


def test_a_damaged_survey_counts_as_none(tiny_bundle: Path) -> None:
    path = survey_path(read_manifest(tiny_bundle))
    path.parent.mkdir(parents=True)
    path.write_bytes(b"SAPNGRAM, but no more")
    assert load_survey(read_manifest(tiny_bundle)) is None
    Engine(tiny_bundle, threads=1)


def test_a_cache_that_cannot_be_written_is_one_line(
    sapwood: Sapwood, tiny_bundle: Path, tmp_path: Path
) -> None:
    in_the_way = tmp_path / "occupied"
    in_the_way.write_text("a file")
    result = sapwood(
        "tune",
        tiny_bundle,
        "--threads",
        "1",
        "--repeats",
        "1",
        environment={"XDG_CACHE_HOME": str(in_the_way)},
    )
    refused(result, str(in_the_way), "could not be kept")
