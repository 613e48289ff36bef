"""A safetensors file, mapped, with every offset checked before it is believed.

Read here rather than with the safetensors package because numpy knows no bfloat16, which most
checkpoints are in: its sixteen bits are the upper half of a float32. Format: the header's length as
a little-endian u64, the header as JSON, the data.
"""

from __future__ import annotations

import json
import math
import mmap
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sapwood.errors import SapwoodError
from sapwood_export.sources.base import Rows

LARGEST_HEADER = 100_000_000  # bytes, the format's own limit

_TYPES = {"F64": "<f8", "F32": "<f4", "F16": "<f2", "BF16": "<u2"}
_SIZES = {"F64": 8, "F32": 4, "F16": 2, "BF16": 2, "F8_E4M3": 1, "F8_E5M2": 1, "F8_E8M0": 1}
_SIZES |= {"I64": 8, "U64": 8, "I32": 4, "U32": 4, "I16": 2, "U16": 2, "I8": 1, "U8": 1, "BOOL": 1}


class SafetensorsFile:
    """The tensors of one file by name."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            self.size = path.stat().st_size
            with path.open("rb") as file:
                if self.size < 8:
                    raise SapwoodError(f"{path}: truncated: {self.size} bytes are no safetensors")
                self._map = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except OSError as error:
            raise SapwoodError(f"{path}: cannot be read: {error.strerror}") from None
        self.bytes: NDArray[np.uint8] = np.frombuffer(self._map, dtype=np.uint8)
        self.tensors: dict[str, SafetensorsTensor] = {}
        header, data = self._header()
        for name, entry in header.items():
            if name != "__metadata__":
                self.tensors[name] = self._tensor(name, entry, data)

    def _header(self) -> tuple[dict[str, Any], int]:
        length = int.from_bytes(self._map[:8], "little")
        if length > LARGEST_HEADER:
            raise SapwoodError(f"{self.path}: not a safetensors file: no header at its beginning")
        if 8 + length > self.size:
            raise SapwoodError(
                f"{self.path}: truncated: the header needs {8 + length} bytes, the file has "
                f"{self.size}; download it again"
            )
        try:
            header = json.loads(self._map[8 : 8 + length])
        except (ValueError, RecursionError):
            raise SapwoodError(
                f"{self.path}: not a safetensors file: the header is no JSON"
            ) from None
        if not isinstance(header, dict):
            raise SapwoodError(f"{self.path}: not a safetensors file: the header is no object")
        return header, 8 + length

    def _tensor(self, name: str, entry: Any, data: int) -> SafetensorsTensor:
        values = entry if isinstance(entry, dict) else {}
        kind, shape, span = values.get("dtype"), values.get("shape"), values.get("data_offsets")
        if not (
            isinstance(kind, str)
            and isinstance(shape, list)
            and all(isinstance(size, int) and size >= 0 for size in shape)
            and isinstance(span, list)
            and len(span) == 2
            and all(isinstance(offset, int) and offset >= 0 for offset in span)
        ):
            raise SapwoodError(f"{self.path}: the header's entry for tensor '{name}' is damaged")
        begin, end = span
        if kind not in _SIZES:
            raise SapwoodError(f"{self.path}: tensor '{name}' has the unknown type {kind}")
        if end - begin != math.prod(shape) * _SIZES[kind]:
            raise SapwoodError(
                f"{self.path}: tensor '{name}' has {end - begin} bytes for the shape {shape} "
                f"of {kind}"
            )
        if data + end > self.size:
            raise SapwoodError(
                f"{self.path}: tensor '{name}' ends at byte {data + end}, the file has "
                f"{self.size}: truncated or damaged; download it again"
            )
        return SafetensorsTensor(self, name, tuple(shape), kind, data + begin, end - begin)


@dataclass(frozen=True)
class SafetensorsTensor:
    """A tensor in a mapped safetensors file."""

    file: SafetensorsFile
    name: str
    shape: tuple[int, ...]
    format: str
    offset: int
    size: int

    def read(self, rows: Rows | None = None) -> NDArray[np.float32]:
        if self.format not in _TYPES:
            raise SapwoodError(
                f"{self.file.path}: tensor '{self.name}' is {self.format}, not plain floating "
                "point: save the model unquantised"
            )
        raw = self.file.bytes[self.offset : self.offset + self.size]
        by_row = raw.reshape(self.shape[0] if self.shape else 1, -1)
        chosen = by_row if rows is None else by_row[rows]
        values = np.ascontiguousarray(chosen).view(np.dtype(_TYPES[self.format]))
        values = values.reshape(len(chosen), *self.shape[1:]) if self.shape else values
        if self.format == "BF16":
            values = (values.astype(np.uint32) << np.uint32(16)).view(np.float32)
        numbers: NDArray[np.float32] = values.astype(np.float32, copy=False)
        return numbers

    def read_blocks(self, rows: Rows | None = None) -> None:
        return None
