"""From token ids to text, piece by piece: a detokeniser and a search for stop strings.

Both are incremental and exact: whatever way the ids arrive, the joined pieces equal one decode of
all of them, and no piece ends inside a character.
"""

from __future__ import annotations

import codecs
import json
import re
from collections.abc import Iterable, Sequence
from typing import Protocol

from tokenizers import Tokenizer as _Tokenizer

_REPLACEMENT = "\ufffd"
_BYTE_TOKEN = re.compile(r"<0x[0-9A-F]{2}>")
# Tokens of already emitted text that a decoder may look back at (a leading space it would strip).
_LOOKBACK = 4


class Detokenizer(Protocol):
    """Turns ids into text; ``push`` gives what is certain so far, ``finish`` whatever is left."""

    def push(self, token: int) -> str: ...

    def finish(self) -> str: ...


def make_detokenizer(tokenizer: _Tokenizer) -> Detokenizer:
    """The cheapest exact detokeniser for this tokenizer's decoder."""
    if _decoder_kind(tokenizer) == "ByteLevel":
        return ByteLevelDetokenizer(tokenizer)
    return WindowDetokenizer(tokenizer)


def _decoder_kind(tokenizer: _Tokenizer) -> str | None:
    decoder = tokenizer.decoder
    if decoder is None:
        return None
    state = decoder.__getstate__()
    kind = json.loads(state)["type"]
    return str(kind)


def byte_level_alphabet() -> dict[str, int]:
    """The characters that byte-level BPE writes bytes as (GPT-2's reversible byte alphabet).

    Printable Latin-1 characters stand for themselves, the other bytes for the characters from
    U+0100 upwards, in order.
    """
    printable = [*range(0x21, 0x7F), *range(0xA1, 0xAD), *range(0xAE, 0x100)]
    alphabet = {chr(byte): byte for byte in printable}
    others = [byte for byte in range(256) if byte not in set(printable)]
    alphabet.update({chr(0x100 + i): byte for i, byte in enumerate(others)})
    return alphabet


class ByteLevelDetokenizer:
    """For byte-level BPE: every token is a string of bytes, so only UTF-8 decoding has a state."""

    def __init__(self, tokenizer: _Tokenizer) -> None:
        self._tokenizer = tokenizer
        self._alphabet = byte_level_alphabet()
        self._special = _special_ids(tokenizer)
        self._utf8 = codecs.getincrementaldecoder("utf-8")("replace")

    def push(self, token: int) -> str:
        return self._utf8.decode(self._bytes(token))

    def finish(self) -> str:
        return self._utf8.decode(b"", final=True)

    def _bytes(self, token: int) -> bytes:
        content = None if token in self._special else self._tokenizer.id_to_token(token)
        if content is None:
            return b""
        try:
            return bytes(self._alphabet[character] for character in content)
        except KeyError:  # an added token is written as it is, not in the byte alphabet
            return str(content).encode()


class WindowDetokenizer:
    """For any other decoder: decodes a short window and gives the part that cannot change any more.

    A run of byte tokens (``<0xE2>`` ...) is decoded as a whole, so it is held until it has ended;
    so is text that ends in U+FFFD, which may be the first half of a character.
    """

    def __init__(self, tokenizer: _Tokenizer) -> None:
        self._tokenizer = tokenizer
        self._special = _special_ids(tokenizer)
        self._context: list[int] = []
        self._pending: list[int] = []

    def push(self, token: int) -> str:
        if token in self._special:  # a decode leaves it out before it looks at anything else
            return ""
        self._pending.append(token)
        content = self._tokenizer.id_to_token(token)
        if content is not None and _BYTE_TOKEN.fullmatch(content):
            return ""
        return self._take(final=False)

    def finish(self) -> str:
        return self._take(final=True)

    def _take(self, *, final: bool) -> str:
        before = self._decode(self._context)
        text = self._decode(self._context + self._pending)
        if text.endswith(_REPLACEMENT) and not final:
            return ""
        self._context = (self._context + self._pending)[-_LOOKBACK:]
        self._pending = []
        return text[len(before) :]

    def _decode(self, ids: Sequence[int]) -> str:
        return str(self._tokenizer.decode(ids, skip_special_tokens=True))


def _special_ids(tokenizer: _Tokenizer) -> frozenset[int]:
    added = tokenizer.get_added_tokens_decoder()
    return frozenset(token_id for token_id, token in added.items() if token.special)


class StopMatcher:
    """Finds the stop string that is complete first, however the text is cut into pieces.

    ``push`` returns text that no stop string can still claim; once ``matched`` is set, the text
    before the stop string has been given and nothing more will be.
    """

    def __init__(self, stops: Iterable[str]) -> None:
        self._stops = tuple(dict.fromkeys(stops))
        if "" in self._stops:
            raise ValueError("a stop string must not be empty")
        self._held = ""
        self.matched: str | None = None

    def push(self, piece: str) -> str:
        if self.matched is not None:
            return ""
        if not self._stops:
            return piece
        text = self._held + piece
        match = self._first_complete(text)
        if match is not None:
            begin, self.matched = match
            self._held = ""
            return text[:begin]
        keep = self._longest_open_prefix(text)
        self._held = text[len(text) - keep :]
        return text[: len(text) - keep]

    def finish(self) -> str:
        """The text held back, when no more will come."""
        held, self._held = self._held, ""
        return held

    def _first_complete(self, text: str) -> tuple[int, str] | None:
        found = [
            (text.find(stop) + len(stop), -len(stop), stop) for stop in self._stops if stop in text
        ]
        if not found:
            return None
        end, _, stop = min(found)
        return end - len(stop), stop

    def _longest_open_prefix(self, text: str) -> int:
        for length in range(min(len(text), max(map(len, self._stops)) - 1), 0, -1):
            tail = text[len(text) - length :]
            if any(stop.startswith(tail) for stop in self._stops if len(stop) > length):
                return length
        return 0
