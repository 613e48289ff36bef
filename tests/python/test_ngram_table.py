"""``sapwood ngram build``: a table of texts that drafters begin with, and what is refused."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from conftest import Sapwood, refused
from sapwood.engine import Engine
from sapwood.errors import SapwoodError

TEXT = "a b c d a b c d a b c d e"


@pytest.fixture
def table(sapwood: Sapwood, tiny_bundle: Path, tmp_path: Path) -> Path:
    text, output = tmp_path / "text.txt", tmp_path / "text.ngram"
    text.write_text(TEXT)
    result = sapwood("ngram", "build", text, "-o", output, "--bundle", tiny_bundle, "--json")
    assert result.returncode == 0, result.stderr
    report = json.loads(result.stdout)
    assert report["path"] == str(output)
    assert report["tokens"] > 0
    assert report["contexts"] > 0
    assert report["bytes"] == output.stat().st_size
    return output


def test_an_answer_is_the_same_with_a_table(tiny_bundle: Path, table: Path) -> None:
    answers = []
    for engine in (
        Engine(tiny_bundle, threads=1),
        Engine(tiny_bundle, threads=1, ngram=table),
        Engine(tiny_bundle, threads=1, ngram=table, drafter="successor"),
    ):
        for mode in ("plain", "dynamic", "fixed"):
            generation = engine.generate("a b", raw=True, max_new_tokens=40, mode=mode)
            for _ in generation:
                pass
            answers.append(generation.token_ids)
    assert all(answer == answers[0] for answer in answers)


def test_a_table_gives_the_first_step_something_to_guess(tiny_bundle: Path, table: Path) -> None:
    drafted = []
    for ngram in (None, table):
        engine = Engine(tiny_bundle, threads=1, drafter="successor", ngram=ngram)
        generation = engine.generate("d a b", raw=True, max_new_tokens=5, mode="chain")
        next(generation, "")
        drafted.append(engine.session.stats.drafted_tokens)
    assert drafted[0] == 0 < drafted[1]


def test_the_command_line_takes_a_table(sapwood: Sapwood, tiny_bundle: Path, table: Path) -> None:
    result = sapwood(
        *("generate", tiny_bundle, "--prompt", "a b", "--ngram", table),
        *("--max-new-tokens", "4", "--json"),
    )
    assert result.returncode == 0, result.stderr
    refused(
        sapwood(
            *("generate", tiny_bundle, "--prompt", "a", "--ngram", table, "--drafter", "ngram")
        ),
        "saved n-gram table",
    )


def test_a_damaged_table_is_refused(tiny_bundle: Path, table: Path) -> None:
    table.write_bytes(table.read_bytes()[:-1])
    with pytest.raises(SapwoodError, match=r"text\.ngram.*damaged"):
        Engine(tiny_bundle, threads=1, ngram=table)
    with pytest.raises(SapwoodError, match=r"absent\.ngram"):
        Engine(tiny_bundle, threads=1, ngram=table.with_name("absent.ngram"))


def test_texts_that_cannot_be_read_are_named(
    sapwood: Sapwood, tiny_bundle: Path, tmp_path: Path
) -> None:
    output = tmp_path / "out.ngram"
    absent, binary, empty = tmp_path / "absent.txt", tmp_path / "bytes.txt", tmp_path / "empty.txt"
    binary.write_bytes(b"\xff\xfe")
    empty.write_text("")
    for text, named in ((absent, "absent.txt"), (binary, "bytes.txt"), (empty, "no text")):
        refused(
            sapwood("ngram", "build", text, "-o", output, "--bundle", tiny_bundle),
            named,
        )
        assert not output.exists()
