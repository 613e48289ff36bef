"""Training data on disk: shards of what the target wrote, with its hidden states, to be mapped.

A folder holds ``data.json`` and, for every shard of some hundred texts,

=========================  =========================  ==========================================
``NAME.tokens.npy``        int32 [n]                  the texts one behind the other
``NAME.sequence.npy``      int64 [texts + 1]          where they begin and end
``NAME.start.npy``         int32 [texts]              first position that the target wrote itself
``NAME.category.npy``      int32 [texts]              index into ``categories`` of data.json
``NAME.temperature.npy``   float32 [texts]            at which it wrote
``NAME.hidden.npy``        float16 [n, layers, h]     outputs of ``layers`` of data.json, before
                                                      any norm; the last layer is the target's last
=========================  =========================  ==========================================

The hidden states take their name last: a shard that has them is whole, and never changes again.
"""

from __future__ import annotations

import json
import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from sapwood.errors import SapwoodError

DATA_FILE = "data.json"

_LAST = "hidden"
_PARTIAL = ".partial-"  # begins the name of a file that is being written
_Number = TypeVar("_Number", bound=np.generic)


@dataclass(frozen=True)
class Text:
    """One text of the target: a conversation from its first token on."""

    tokens: NDArray[np.int32]  # [n]
    start: int  # first position that the target wrote itself
    category: int
    temperature: float
    hidden: NDArray[np.float16]  # [n, layers, h]


@dataclass(frozen=True)
class Shard:
    """A finished shard, mapped: n tokens of several texts one behind the other."""

    name: str
    tokens: NDArray[np.int32]  # [n]
    offsets: NDArray[np.int64]  # [texts + 1]
    start: NDArray[np.int32]  # [texts], first position the target wrote itself
    category: NDArray[np.int32]  # [texts]
    temperature: NDArray[np.float32]  # [texts]
    hidden: NDArray[np.float16]  # [n, layers, h]


def shard_name(number: int) -> str:
    """The name of a shard: ``shard-00000``, ``shard-00001``, ..."""
    return f"shard-{number:05d}"


def shard_names(folder: Path) -> list[str]:
    """Finished shards, by name."""
    suffix = f".{_LAST}.npy"
    return sorted(path.name.removesuffix(suffix) for path in folder.glob(f"shard-*{suffix}"))


def open_shard(folder: Path, name: str) -> Shard:
    """Maps a finished shard. Raises SapwoodError if one of its files is not what it should be."""

    def load(part: str, kind: type[_Number]) -> NDArray[_Number]:
        path = folder / f"{name}.{part}.npy"
        try:
            array: NDArray[Any] = np.load(path, mmap_mode="r", allow_pickle=False)
        except (OSError, ValueError) as error:
            reason = getattr(error, "strerror", None) or str(error)
            raise SapwoodError(f"{path}: cannot be read: {reason}; delete the shard") from None
        if array.dtype != kind:
            raise SapwoodError(f"{path}: holds {array.dtype}; delete the shard")
        return array

    shard = Shard(
        name,
        load("tokens", np.int32),
        load("sequence", np.int64),
        load("start", np.int32),
        load("category", np.int32),
        load("temperature", np.float32),
        load(_LAST, np.float16),
    )
    texts, tokens = len(shard.start), len(shard.tokens)
    ends = (len(shard.offsets), int(shard.offsets[-1]), len(shard.hidden))
    if ends != (texts + 1, tokens, tokens):
        raise SapwoodError(f"{folder / name}: its files do not fit each other; delete the shard")
    return shard


def write_shard(folder: Path, name: str, texts: Sequence[Text]) -> None:
    """Writes a shard, whole or not at all. Raises OSError."""
    offsets = np.cumsum([0, *(len(text.tokens) for text in texts)], dtype=np.int64)
    small: dict[str, NDArray[Any]] = {
        "tokens": np.concatenate([text.tokens for text in texts]).astype(np.int32),
        "sequence": offsets,
        "start": np.array([text.start for text in texts], dtype=np.int32),
        "category": np.array([text.category for text in texts], dtype=np.int32),
        "temperature": np.array([text.temperature for text in texts], dtype=np.float32),
    }
    final = {part: folder / f"{name}.{part}.npy" for part in (*small, _LAST)}
    partial = {part: folder / f"{_PARTIAL}{name}.{part}.npy" for part in final}
    try:
        for part, array in small.items():
            np.save(partial[part], array)
        shape = (int(offsets[-1]), *texts[0].hidden.shape[1:])
        # Text by text: side by side in memory they would be there twice.
        hidden = np.lib.format.open_memmap(partial[_LAST], "w+", dtype=np.float16, shape=shape)
        for text, begin in zip(texts, offsets, strict=False):
            hidden[begin : begin + len(text.tokens)] = text.hidden
        hidden.flush()
        del hidden
        for part, path in partial.items():
            os.replace(path, final[part])
    except BaseException:
        for path in final.values():
            path.unlink(missing_ok=True)
        raise
    finally:
        for path in partial.values():
            path.unlink(missing_ok=True)


def remove_leftovers(folder: Path) -> None:
    """Removes what a process that was killed left of a shard it was writing."""
    for path in folder.glob(f"{_PARTIAL}*.npy"):
        path.unlink(missing_ok=True)


def read_data_file(folder: Path) -> dict[str, Any]:
    """What data.json says of the shards beside it. Raises SapwoodError if it cannot be read."""
    path = folder / DATA_FILE
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
        if not isinstance(document, dict) or not isinstance(document["layers"], list):
            raise ValueError("it names no layers")
    except (OSError, ValueError, KeyError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise SapwoodError(f"{path}: no training data: {reason}") from None
    return document


def write_data_file(folder: Path, document: Mapping[str, Any]) -> None:
    """Replaces data.json at once. Raises OSError."""
    partial = folder / f"{_PARTIAL}{DATA_FILE}"
    try:
        partial.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
        os.replace(partial, folder / DATA_FILE)
    finally:
        partial.unlink(missing_ok=True)


def kept_layers(folder: Path) -> tuple[int, ...]:
    """The layers whose outputs the shards hold, the target's last one at the end."""
    return tuple(int(layer) for layer in read_data_file(folder)["layers"])
