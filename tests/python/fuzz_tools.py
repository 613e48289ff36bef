"""Damaged files for readers to refuse: random changes, and what must come of reading them."""

from __future__ import annotations

import random
import signal
import struct
import tracemalloc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FrameType

from sapwood.errors import SapwoodError

LARGEST_ALLOCATION = 64 << 20  # bytes; the files read here have less than one megabyte
LONGEST_READ = 20  # seconds of processor time, far above what any takes: for loops without an end

_INTEGERS = (0, 1, 2, 3, 31, 32, 64, 255, 2**31 - 1, 2**31, 2**32 - 1, 2**32, 2**40)
_INTEGERS += (2**62, 2**63 - 1, 2**63, 2**64 - 1)


def change_bytes(data: bytes, generator: random.Random, end: int | None = None) -> bytes:
    """``data`` with one to three changes before position ``end``, or cut off anywhere."""
    changed = bytearray(data)
    for _ in range(generator.randint(1, 3)):
        at = generator.randrange(min(len(changed), end or len(changed)) or 1)
        kind = generator.randrange(7)
        if kind == 0:
            changed[at : at + 1] = bytes([generator.randrange(256)])
        elif kind == 1:
            changed[at : at + 1] = bytes([changed[at] ^ 1 << generator.randrange(8)])
        elif kind == 2:
            changed[at : at + 8] = struct.pack("<Q", generator.choice(_INTEGERS))
        elif kind == 3:
            changed[at : at + 4] = struct.pack("<I", generator.choice(_INTEGERS) & 0xFFFFFFFF)
        elif kind == 4:
            del changed[at : at + generator.choice((1, 4, 8, 64))]
        elif kind == 5:
            start = generator.randrange(len(changed))
            changed[at:at] = changed[start : start + generator.choice((1, 4, 8, 64))]
        elif generator.randrange(4) == 0:
            del changed[at:]
            break
    return bytes(changed) or b"\0"


@contextmanager
def _limited_time() -> Iterator[None]:
    def stop(_signal: int, _frame: FrameType | None) -> None:
        raise AssertionError(f"still reading after {LONGEST_READ} s of computing")

    # Not the clock on the wall: a busy machine may hold this process up for as long as it likes.
    before = signal.signal(signal.SIGPROF, stop)
    signal.setitimer(signal.ITIMER_PROF, LONGEST_READ)
    try:
        yield
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, before)


def refuse_or_read(read: Callable[[], object], what: str) -> bool:
    """Whether ``read`` succeeded; a failure must be a SapwoodError of one line.

    Any other exception, a huge allocation or an endless loop fails the test, and names ``what``.
    """
    tracemalloc.start()
    try:
        with _limited_time():
            read()
        accepted = True
    except SapwoodError as error:
        accepted = False
        message = str(error)
        assert message.isprintable(), f"{what}: not one line of text: {message!r}"
        assert 0 < len(message) <= 2000, f"{what}: a message of {len(message)} characters"
    except Exception as error:
        raise AssertionError(f"{what}: {type(error).__name__}: {error}") from error
    finally:
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
    assert peak < LARGEST_ALLOCATION, f"{what}: {peak} bytes were allocated"
    return accepted
