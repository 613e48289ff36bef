"""The sapwood command at a terminal: a conversation that a person interrupts."""

from __future__ import annotations

import os
import pty
import re
import select
import signal
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest


class Terminal:
    """A process with a terminal of its own, and what it has shown so far."""

    def __init__(self, *arguments: str, kind: str = "dumb") -> None:
        self.shown = ""
        self._process, self._terminal = pty.fork()
        if self._process == 0:
            os.environ["TERM"] = kind
            os.execv(sys.executable, [sys.executable, "-m", "sapwood", *arguments])

    def type(self, text: str) -> None:
        os.write(self._terminal, text.encode())

    def wait_for(self, pattern: str, seconds: float = 90) -> None:
        """Reads until the pattern has been shown, and forgets everything up to its end."""
        deadline = time.monotonic() + seconds
        while (match := re.search(pattern, self.shown)) is None:
            assert time.monotonic() < deadline, f"{pattern!r} did not come after {self.shown!r}"
            if not select.select([self._terminal], [], [], 0.2)[0]:
                continue
            try:
                self.shown += os.read(self._terminal, 4096).decode(errors="replace")
            except OSError:  # the other side has closed
                raise AssertionError(f"ended before {pattern!r}: {self.shown!r}") from None
        self.shown = self.shown[match.end() :]

    def status(self, seconds: float = 90) -> int:
        """The exit status, once the process has ended."""
        deadline = time.monotonic() + seconds
        while time.monotonic() < deadline:
            # It may not end before what it shows has been read.
            if not select.select([self._terminal], [], [], 0.2)[0]:
                continue
            try:
                if os.read(self._terminal, 4096):
                    continue
            except OSError:
                pass  # the other side has closed
            _, status = os.waitpid(self._process, 0)
            return os.waitstatus_to_exitcode(status)
        raise TimeoutError(f"still there after {seconds:.0f} s")

    def end_with(self, key: str) -> int:
        """Types the key, and again where nothing comes of it; the exit status.

        Between showing the prompt and waiting for a key, readline and the terminal may lose one: a
        person who sees nothing happen presses again.
        """
        for _ in range(5):
            self.type(key)
            try:
                return self.status(10)
            except TimeoutError:
                continue
        self.type(key)
        return self.status()

    def close(self) -> None:
        try:
            os.kill(self._process, signal.SIGKILL)
            os.waitpid(self._process, 0)
        except (ProcessLookupError, ChildProcessError):
            pass  # it has ended, and status() has seen it
        os.close(self._terminal)


@pytest.fixture
def chat(smollm2: Path) -> Iterator[Terminal]:
    terminal = Terminal("chat", str(smollm2), "--max-new-tokens", "1200")
    yield terminal
    terminal.close()


def test_ctrl_c_ends_an_answer_but_not_the_conversation(chat: Terminal) -> None:
    chat.wait_for("> ")
    chat.type("Write a very long story about the sea.\n")
    chat.wait_for(r"\n[^\n]*\w+ \w+")
    chat.type("\x03")
    chat.wait_for("> ")
    chat.type("/clear\n")
    chat.wait_for("> ")
    assert chat.end_with("\x04") == 0


def test_ctrl_c_at_the_prompt_ends_the_conversation(chat: Terminal) -> None:
    chat.wait_for("> ")
    assert chat.end_with("\x03") == 130
