"""``sapwood bench suite`` and ``bench tree``: the shape of their reports and what they refuse."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from conftest import Sapwood, refused
from sapwood.cli.bench.suite_counts import Answer, Outcome, summarise
from sapwood.cli.bench.suite_questions import read_questions
from sapwood.errors import SapwoodError

QUESTIONS = [
    {"question_id": 1, "category": "writing", "turns": ["a b c a b c a b", "more"]},
    {"question_id": 2, "category": "writing", "turns": ["b c d"]},
    {"question_id": 3, "category": "qa", "turns": ["what is a"]},
    {"question_id": 4, "category": "writing", "turns": ["never asked"]},
]


@pytest.fixture
def questions(tmp_path: Path) -> Path:
    path = tmp_path / "questions.jsonl"
    path.write_text("\n".join(map(json.dumps, QUESTIONS)) + "\n\n")
    return path


def test_categories_take_turns_and_give_their_first_questions(questions: Path) -> None:
    chosen = read_questions(questions, 2)
    assert [question.question_id for question in chosen] == ["1", "3", "2"]
    assert [question.category for question in chosen] == ["writing", "qa", "writing"]
    assert [question.question_id for question in read_questions(questions, 0)] == list("1324")


@pytest.mark.parametrize("temperature", ["0", "0.8"])
def test_modes_are_compared_by_category(
    sapwood: Sapwood, tiny_bundle: Path, questions: Path, temperature: str
) -> None:
    result = sapwood(
        *("bench", "suite", tiny_bundle, "--suite", questions, "--per-category", "2"),
        *("--modes", "plain,chain,fixed,dynamic", "--drafter", "mix", "--threads", "1"),
        *("--temperature", temperature, "--max-new-tokens", "24", "--json"),
    )
    assert result.returncode == 0, result.stderr
    report = json.loads(result.stdout)
    assert report["equal_tokens"] is True
    assert report["questions"] == 3
    assert report["drafter"] == "mix"
    assert report["temperature"] == float(temperature)
    assert list(report["modes"]) == ["plain", "chain", "fixed", "dynamic"]
    tokens = {mode["tokens"] for mode in report["modes"].values()}
    assert len(tokens) == 1
    for name, mode in report["modes"].items():
        assert set(mode["by_category"]) == {"writing", "qa"}
        for part in (mode, *mode["by_category"].values()):
            assert part["tokens_per_second"] > 0
            assert part["mean_accepted_length"] >= 1
            assert part["mean_rows"] >= 1
            assert part["peak_kv_slots"] > 0
            assert part["differing_prompts"] == 0
            spread = part["answer_tokens_per_second"]
            assert 0 < spread["lower_quartile"] <= spread["median"] <= spread["upper_quartile"]
            emitted = sum(n * steps for n, steps in enumerate(part["steps_by_tokens"], 1))
            assert emitted == part["tokens"]
            assert sum(part["steps_by_tokens"]) == part["steps"]
        if name == "plain":
            assert mode["mean_accepted_length"] == mode["mean_rows"] == mode["speedup"] == 1
    whole = report["modes"]["plain"]
    assert whole["tokens"] == sum(part["tokens"] for part in whole["by_category"].values())


def test_differing_ids_are_counted_by_mode_and_category() -> None:
    counts = dict.fromkeys(Answer.of([], _Counts()).counts, 2.0)
    outcomes = [
        Outcome(
            str(number),
            category,
            {m: Answer(ids, (1,) * len(ids), counts) for m, ids in answers.items()},
        )
        for number, (category, answers) in enumerate(
            [
                ("qa", {"chain": (1, 2), "plain": (1, 2), "dynamic": (1, 3)}),
                ("qa", {"chain": (1,), "plain": (1,), "dynamic": (1,)}),
                ("rag", {"chain": (4,), "plain": (4, 4), "dynamic": (4,)}),
            ]
        )
    ]
    report = summarise(outcomes, ["chain", "plain", "dynamic"])
    assert report["ids_compared_with"] == "plain"
    assert report["differing_question_ids"] == ["0", "2"]
    assert report["equal_tokens"] is False
    found = {name: mode["differing_prompts"] for name, mode in report["modes"].items()}
    assert found == {"chain": 1, "plain": 0, "dynamic": 2}
    by_category = report["modes"]["dynamic"]["by_category"]
    assert {name: part["differing_prompts"] for name, part in by_category.items()} == {
        "qa": 1,
        "rag": 1,
    }
    assert summarise(outcomes, ["chain", "dynamic"])["ids_compared_with"] == "chain"


def test_medians_and_spread_are_those_of_single_answers() -> None:
    counts = dict.fromkeys(Answer.of([], _Counts()).counts, 1.0)
    seconds = {"plain": (1.0, 1.0, 2.0, 1.0, 1.0), "chain": (0.5, 1.0, 0.5, 0.25, 2.0)}
    outcomes = [
        Outcome(
            str(number),
            "qa",
            {
                mode: Answer(
                    (7,) * 6, steps, counts | {"decode_seconds": taken, "emitted_tokens": 6.0}
                )
                for mode, taken, steps in (
                    ("plain", plain, (1,) * 6),
                    ("chain", chain, (3, 2, 1)),
                )
            },
        )
        for number, (plain, chain) in enumerate(zip(*seconds.values(), strict=True))
    ]
    report = summarise(outcomes, ["plain", "chain"])["modes"]
    # Speed-ups of the answers: 2, 1, 4, 4 and 1/2.
    assert report["chain"]["answer_speedup"] == {
        "lower_quartile": 1.0,
        "median": 2.0,
        "upper_quartile": 4.0,
    }
    assert report["chain"]["answer_tokens_per_second"]["median"] == 12.0
    assert report["plain"]["answer_speedup"]["median"] == 1.0
    assert report["plain"]["steps_by_tokens"] == [30]
    assert report["plain"]["acceptance_by_depth"] == []
    # Of 15 steps 10 emitted more than a token, and 5 of those more than two.
    assert report["chain"]["steps_by_tokens"] == [5, 5, 5]
    assert report["chain"]["acceptance_by_depth"] == pytest.approx([2 / 3, 1 / 2])
    alone = summarise(outcomes[:1], ["chain"])["modes"]["chain"]
    assert alone["answer_speedup"] is None
    assert set(alone["answer_tokens_per_second"].values()) == {12.0}


class _Counts:
    """Stands for a session's statistics: every count is 0."""

    def __getattr__(self, name: str) -> int:
        return 0


def test_a_run_that_was_ended_goes_on_where_it_was(
    sapwood: Sapwood, tiny_bundle: Path, questions: Path, tmp_path: Path
) -> None:
    record = tmp_path / "record.jsonl"
    command = (
        *("bench", "suite", tiny_bundle, "--suite", questions, "--per-category", "0"),
        *("--modes", "plain,dynamic", "--threads", "1", "--record", record, "--json"),
    )
    first = sapwood(*command, "--max-new-tokens", "8")
    assert first.returncode == 0, first.stderr
    settings, *lines = record.read_text().splitlines()
    assert json.loads(settings)["settings"]["max_new_tokens"] == 8
    assert [json.loads(line)["question_id"] for line in lines] == list("1324")

    # Killed in the middle of the third line; the marked first must be taken, not asked again.
    marked = json.loads(lines[0])
    marked["answers"]["plain"]["counts"]["steps"] = 1000
    record.write_text("\n".join([settings, json.dumps(marked), lines[1], lines[2][:40]]))
    again = sapwood(*command, "--max-new-tokens", "8")
    assert again.returncode == 0, again.stderr
    modes = json.loads(again.stdout)["modes"]
    assert modes["plain"]["answers"] == 4
    assert modes["plain"]["steps"] == 1000 + json.loads(first.stdout)["modes"]["plain"]["steps"] - 8
    assert len(record.read_text().splitlines()) == 5

    refused(sapwood(*command, "--max-new-tokens", "9"), "max_new_tokens 8, not 9")
    record.write_text("no record\n")
    refused(sapwood(*command, "--max-new-tokens", "8"), "record.jsonl")
    assert record.read_text() == "no record\n"


def test_people_get_a_table(sapwood: Sapwood, tiny_bundle: Path, questions: Path) -> None:
    result = sapwood(
        *("bench", "suite", tiny_bundle, "--suite", questions, "--per-category", "1"),
        *("--modes", "plain,dynamic", "--threads", "1", "--max-new-tokens", "8"),
    )
    assert result.returncode == 0, result.stderr
    assert "writing" in result.stdout
    assert "gave the same tokens" in " ".join(result.stdout.split())


@pytest.mark.parametrize(
    "text", ["", "not json\n", "[]\n", '{"turns": []}\n', '{"question_id": 1, "category": "x"}\n']
)
def test_a_file_without_questions_is_refused(tmp_path: Path, text: str) -> None:
    path = tmp_path / "bad.jsonl"
    path.write_text(text)
    with pytest.raises(SapwoodError, match=r"bad\.jsonl"):
        read_questions(path, 1)


def test_a_turn_that_is_no_text_is_refused_with_its_line(tmp_path: Path) -> None:
    path = tmp_path / "bad.jsonl"
    path.write_text(
        json.dumps(QUESTIONS[0])
        + "\n"
        + json.dumps({"question_id": 1, "category": "x", "turns": [3]})
    )
    with pytest.raises(SapwoodError, match="line 2"):
        read_questions(path, 1)


def test_a_missing_suite_or_unknown_mode_is_one_line(
    sapwood: Sapwood, tiny_bundle: Path, questions: Path, tmp_path: Path
) -> None:
    missing = tmp_path / "absent.jsonl"
    refused(sapwood("bench", "suite", tiny_bundle, "--suite", missing), "absent.jsonl")
    refused(sapwood("bench", "suite", tiny_bundle), "--suite")
    refused(
        sapwood("bench", "suite", tiny_bundle, "--suite", questions, "--modes", "quick"), "quick"
    )


def test_the_parts_of_a_step_are_measured_for_each_drafter(sapwood: Sapwood) -> None:
    result = sapwood(
        *("bench", "tree", "--nodes", "8", "--vocabulary", "500", "--rounds", "10", "--json")
    )
    assert result.returncode == 0, result.stderr
    report = json.loads(result.stdout)
    assert set(report["microseconds"]) == {"mix", "ngram", "successor"}
    for parts in report["microseconds"].values():
        assert set(parts) == {"grow", "layout", "verify", "follow", "observe", "select_row"}
