"""What ``sapwood bench suite`` has answered so far, in a file, so that a long run can go on.

JSON lines: the settings, then one outcome a line, each written as soon as it is there. A last line
that a killed run left half-written is dropped.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Any

from sapwood.cli.bench.suite_counts import Answer, Outcome
from sapwood.errors import SapwoodError


class Record:
    """``outcomes`` by question id: those the file had, and what was added.

    Raises SapwoodError for a file of another run's settings, or one that is no record.
    """

    def __init__(self, path: Path, settings: Mapping[str, Any]) -> None:
        self.outcomes: dict[str, Outcome] = {}
        self._path = path
        text = self._read()
        lines = text.split("\n")[:-1]
        if lines:
            self._take(lines, settings)
        whole = sum(len(line) + 1 for line in lines)
        try:
            with path.open("r+" if path.exists() else "w", encoding="utf-8") as file:
                file.truncate(len(text[:whole].encode()))
        except OSError as error:
            raise self._unusable(error.strerror or "cannot be written") from error
        if not lines:
            self._append({"settings": dict(settings)})

    def add(self, outcome: Outcome) -> None:
        self.outcomes[outcome.question_id] = outcome
        self._append(asdict(outcome))

    def _read(self) -> str:
        try:
            return self._path.read_text(encoding="utf-8") if self._path.exists() else ""
        except (OSError, UnicodeDecodeError) as error:
            raise self._unusable("cannot be read as text") from error

    def _take(self, lines: list[str], settings: Mapping[str, Any]) -> None:
        try:
            found = json.loads(lines[0])["settings"]
            outcomes = [_outcome(json.loads(line)) for line in lines[1:]]
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            raise self._unusable("is not a record of this command") from error
        for name in sorted({*settings, *found}):
            if settings.get(name) != found.get(name):
                raise self._unusable(
                    f"was recorded with {name} {found.get(name)!r}, not {settings.get(name)!r}"
                )
        self.outcomes = {outcome.question_id: outcome for outcome in outcomes}

    def _append(self, document: Mapping[str, Any]) -> None:
        with self._path.open("a", encoding="utf-8") as file:
            file.write(json.dumps(document) + "\n")

    def _unusable(self, reason: str) -> SapwoodError:
        return SapwoodError(f"--record {self._path}: {reason}; name another file")


def _outcome(document: Mapping[str, Any]) -> Outcome:
    answers = {
        mode: Answer(tuple(answer["ids"]), tuple(answer["steps"]), dict(answer["counts"]))
        for mode, answer in document["answers"].items()
    }
    return Outcome(document["question_id"], document["category"], answers)
