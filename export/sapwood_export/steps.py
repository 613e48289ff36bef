"""Progress of an export that consists of steps."""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from sapwood_export.bundle import Progress

T = TypeVar("T")


class Steps:
    """Reports a step when it begins and the whole when it ends."""

    def __init__(self, progress: Progress | None, count: int) -> None:
        self._progress, self._count, self._done = progress, count, 0

    def run(self, what: str, action: Callable[[], T]) -> T:
        """Runs one step and returns its result."""
        self._report(what)
        result = action()
        self._done += 1
        self._report(what)
        return result

    def _report(self, what: str) -> None:
        if self._progress is not None:
            self._progress(what, self._done, self._count)
