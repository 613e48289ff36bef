"""The prompts of ``sapwood bench suite``: JSON lines, each with an id, a category and turns."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from sapwood.errors import SapwoodError


@dataclass(frozen=True)
class Question:
    """A line of the file; only the first turn is asked."""

    question_id: str
    category: str
    prompt: str


def read_questions(path: Path, per_category: int) -> list[Question]:
    """The first questions of each category, those of all categories taking turns; 0: all.

    Raises SapwoodError for a file that cannot be read or a line that is not a question.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8 text"
        raise SapwoodError(f"--suite {path}: {reason}; give a file of JSON lines") from error
    by_category: dict[str, list[Question]] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        question = _question(line, f"--suite {path}, line {number}")
        group = by_category.setdefault(question.category, [])
        if per_category == 0 or len(group) < per_category:
            group.append(question)
    if not by_category:
        raise SapwoodError(f"--suite {path}: no question in it; give JSON lines with turns")
    return list(_in_turns(list(by_category.values())))


def _question(line: str, where: str) -> Question:
    try:
        document = json.loads(line)
        prompt = document["turns"][0]
        question = Question(str(document["question_id"]), str(document["category"]), prompt)
    except (ValueError, KeyError, IndexError, TypeError, RecursionError) as error:
        raise SapwoodError(
            f"{where}: not an object with question_id, category and turns"
        ) from error
    if not isinstance(prompt, str) or not prompt:
        raise SapwoodError(f"{where}: the first turn must be a text")
    return question


def _in_turns(groups: Sequence[Sequence[Question]]) -> Iterator[Question]:
    for index in range(max(map(len, groups))):
        for group in groups:
            if index < len(group):
                yield group[index]
