"""The one exception that a person's mistake, or a bad file, turns into."""

from __future__ import annotations


class SapwoodError(Exception):
    """Bad input or a machine that lacks something: one line that says what, where and what to do.

    The command line prints the message alone and exits with ``exit_status``.
    """

    exit_status = 2
