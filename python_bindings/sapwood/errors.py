"""The one exception that a person's mistake, or a bad file, turns into."""

from __future__ import annotations

_LONGEST_MESSAGE = 1000  # characters


class SapwoodError(Exception):
    """Bad input or a machine that lacks something: one line that says what, where and what to do.

    The command line prints the message alone and exits with ``exit_status``.
    """

    exit_status = 2

    def __init__(self, message: str) -> None:
        """``message`` may quote names out of a file: what is not printable in them is escaped, so
        that it stays one line and cannot steer a terminal, and what is very long is cut."""
        shown = "".join(c if c.isprintable() else repr(c)[1:-1] for c in message)
        if len(shown) > _LONGEST_MESSAGE:
            half = _LONGEST_MESSAGE // 2
            shown = f"{shown[:half]} ... {shown[-half:]}"
        super().__init__(shown)
