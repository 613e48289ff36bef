"""A line of live metrics on standard error while an answer is written to standard output."""

from __future__ import annotations

import os
import shutil
import sys
import time
from types import TracebackType

from sapwood.metrics import Metrics

_SECONDS = 0.25  # between two looks at a terminal
_LINE_SECONDS = 1.0  # between two lines of a file


class MetricsStrip:
    """On a terminal that shows the answer too: its last line, below where the text scrolls. On one
    that does not: a line that is written over. Elsewhere: a new line every second."""

    def __init__(self) -> None:
        # A dumb terminal has no cursor to move.
        self._terminal = sys.stderr.isatty() and os.environ.get("TERM") not in (None, "dumb")
        self._below_text = self._terminal and sys.stdout.isatty()
        self._shown = 0.0
        self._columns, self._rows = 80, 24

    def __enter__(self) -> MetricsStrip:
        if self._terminal:
            self._columns, self._rows = shutil.get_terminal_size()
        if self._below_text:
            # A free line, then all but it scrolls; ESC 7 and 8 keep and restore the cursor.
            self._write(f"\n\x1b[A\x1b7\x1b[1;{self._rows - 1}r\x1b8")
        return self

    def show(self, metrics: Metrics) -> None:
        """Now and then; harmless to call with every piece."""
        now = time.monotonic()
        if now - self._shown < (_SECONDS if self._terminal else _LINE_SECONDS):
            return
        self._shown = now
        line = metrics.line()[: self._columns - 1] if self._terminal else metrics.line()
        if self._below_text:
            self._write(f"\x1b7\x1b[{self._rows};1H\x1b[2K{line}\x1b8")
        elif self._terminal:
            self._write(f"\r\x1b[2K{line}")
        else:
            self._write(line + "\n")

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        if self._below_text:
            self._write(f"\x1b7\x1b[r\x1b[{self._rows};1H\x1b[2K\x1b8")
        elif self._terminal:
            self._write("\r\x1b[2K")

    @staticmethod
    def _write(text: str) -> None:
        sys.stderr.write(text)
        sys.stderr.flush()
