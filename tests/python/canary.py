"""Looks for a text in bytes of any kind: as itself, re-encoded, and as the ids it is made of."""

from __future__ import annotations

import base64
import json
import re
import struct
import urllib.parse
from collections.abc import Iterator, Sequence
from pathlib import Path

import numpy as np

RUN = 4  # ids in a row that are no accident
_EDGE = 3  # bytes that depend on what stands beside a text in base64


def encodings(text: str) -> Iterator[tuple[str, bytes]]:
    """(encoding, what the text looks like in it)."""
    plain = text.encode()
    for encoding in ("utf-8", "utf-16-le", "utf-16-be", "utf-32-le", "utf-32-be", "utf-7"):
        yield encoding, text.encode(encoding)
    yield "reversed", plain[::-1]
    yield "hexadecimal", plain.hex().encode()
    yield "JSON", json.dumps(text)[1:-1].encode()
    yield "URL", urllib.parse.quote(text).encode()
    yield "URL, form", urllib.parse.quote_plus(text).encode()
    for shift in range(3):  # where in a group of three bytes it begins
        whole = base64.b64encode(bytes(shift) + plain).rstrip(b"=")
        yield f"base64, {shift} bytes on", whole[4 if shift else 0 : -_EDGE]
        yield (
            f"base64 of URLs, {shift} bytes on",
            (
                base64.urlsafe_b64encode(bytes(shift) + plain).rstrip(b"=")[
                    4 if shift else 0 : -_EDGE
                ]
            ),
        )
    wide = base64.b64encode(text.encode("utf-16-le")).rstrip(b"=")
    yield "base64 of UTF-16", wide[:-_EDGE]


def _binary(ids: Sequence[int]) -> Iterator[tuple[str, bytes]]:
    for code in ("<i", ">i", "<q", ">q", "<f"):
        yield f"ids as {code}", b"".join(struct.pack(code, each) for each in ids)
    if max(ids) < 1 << 16:
        yield "ids as <H", struct.pack(f"<{len(ids)}H", *ids)


def found_in(data: bytes, texts: Sequence[str], ids: Sequence[Sequence[int]]) -> list[str]:
    """One line for each way in which a text, or ``RUN`` of its ids in a row, are in ``data``.

    Texts are looked for as a whole and without regard to case.
    """
    lower = data.lower()
    found = [
        f"{text!r} in {encoding}"
        for text in texts
        for encoding, form in encodings(text)
        if form in data or form.lower() in lower
    ]
    numbers = [int(each) for each in re.findall(rb"\d{1,9}", data)]
    for each in ids:
        windows = [tuple(each[at : at + RUN]) for at in range(len(each) - RUN + 1)]
        # Numbers that stand for nothing (0 0 0 0, 1 1 1 1) are no text.
        windows = [window for window in windows if len(set(window)) > 2]
        if numbers:
            written = np.lib.stride_tricks.sliding_window_view(
                np.array(numbers + [-1] * RUN, dtype=np.int64), RUN
            )
            found += [
                f"ids {window} as numbers"
                for window in windows
                if (written == np.array(window)).all(axis=1).any()
            ]
        found += [
            f"{window}: {form}"
            for window in windows
            for form, binary in _binary(window)
            if binary in data
        ]
    return found


def everything_under(folder: Path) -> dict[str, bytes]:
    """Every file's bytes, and its name, by path."""
    return {
        str(path.relative_to(folder)): path.name.encode() + b"\n" + path.read_bytes()
        for path in sorted(folder.rglob("*"))
        if path.is_file()
    }
