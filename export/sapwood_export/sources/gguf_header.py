"""The header of a GGUF file, read strictly.

The `gguf` package's reader trusts every count and length in the file: a hostile one makes it loop
or allocate without end, and it makes one array object a token. This one checks each against the
file's size before it is believed, and names what is wrong. Format: GGUF specification, versions 2
and 3, little-endian: magic, version, tensor count, key-value count, key-values, tensor infos,
padding to the alignment, data.
"""

from __future__ import annotations

import math
import mmap
import struct
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sapwood.errors import SapwoodError

MAGIC = b"GGUF"
VERSIONS = (2, 3)
DEFAULT_ALIGNMENT = 32
MAXIMUM_DIMENSIONS = 4

_SCALARS = {  # value type -> (name, little-endian numpy type)
    0: ("uint8", "<u1"),
    1: ("int8", "<i1"),
    2: ("uint16", "<u2"),
    3: ("int16", "<i2"),
    4: ("uint32", "<u4"),
    5: ("int32", "<i4"),
    6: ("float32", "<f4"),
    7: ("bool", "?"),
    10: ("uint64", "<u8"),
    11: ("int64", "<i8"),
    12: ("float64", "<f8"),
}
_STRING = 8
_ARRAY = 9


@dataclass(frozen=True)
class GgufTensorInfo:
    """Where a tensor lies. ``shape`` is outermost first, as in numpy; GGUF stores it reversed."""

    name: str
    shape: tuple[int, ...]
    format: str  # ggml's name: F32, Q4_1, Q6_K
    offset: int  # from the start of the file
    size: int  # bytes


class GgufFile:
    """One mapped GGUF file: its metadata as Python values, and where its tensors lie."""

    def __init__(self, path: Path) -> None:
        self.path = path
        try:
            with path.open("rb") as file:
                self.size = path.stat().st_size
                if self.size < 24:
                    self._refuse_short_file(file.read(4))
                self._map = mmap.mmap(file.fileno(), 0, access=mmap.ACCESS_READ)
        except OSError as error:
            raise SapwoodError(f"{path}: cannot be read: {error.strerror}") from None
        self.bytes: NDArray[np.uint8] = np.frombuffer(self._map, dtype=np.uint8)
        self._position = 0
        self.metadata: dict[str, Any] = {}
        self.tensors: dict[str, GgufTensorInfo] = {}
        self._read_header()

    def integer(self, key: str, default: int) -> int:
        """A whole number of the metadata."""
        value = self.metadata.get(key, default)
        if not isinstance(value, int):
            raise SapwoodError(f"{self.path}: '{key}' is not a whole number")
        return value

    def _refuse_short_file(self, start: bytes) -> None:
        if start == MAGIC:
            raise SapwoodError(f"{self.path}: truncated: {self.size} bytes are no GGUF header")
        raise SapwoodError(f"{self.path}: not a GGUF file: it does not begin with 'GGUF'")

    def _take(self, size: int, what: str) -> bytes:
        end = self._position + size
        if end > self.size:
            raise SapwoodError(
                f"{self.path}: truncated in the header: {what} at byte {self._position} needs "
                f"{size} bytes, the file has {self.size}; download it again"
            )
        taken = self._map[self._position : end]
        self._position = end
        return taken

    def _integer(self, code: str, what: str) -> int:
        return int(struct.unpack("<" + code, self._take(struct.calcsize(code), what))[0])

    def _string(self, what: str) -> str:
        length = self._integer("Q", f"the length of {what}")
        raw = self._take(length, what)
        try:
            return raw.decode("utf-8")
        except UnicodeDecodeError:
            raise SapwoodError(f"{self.path}: {what} is not valid UTF-8") from None

    def _value(self, value_type: int, key: str) -> Any:
        if value_type == _STRING:
            return self._string(f"the value of '{key}'")
        if value_type in _SCALARS:
            _, code = _SCALARS[value_type]
            size = np.dtype(code).itemsize
            value = np.frombuffer(self._take(size, f"the value of '{key}'"), dtype=code)[0]
            # 1e-05, which is what the author meant, and not 9.999999747378752e-06.
            return float(str(value)) if code == "<f4" else value.item()
        if value_type != _ARRAY:
            raise SapwoodError(f"{self.path}: '{key}' has the unknown value type {value_type}")
        item_type = self._integer("I", f"the item type of '{key}'")
        count = self._integer("Q", f"the length of '{key}'")
        if item_type in _SCALARS:
            _, code = _SCALARS[item_type]
            raw = self._take(count * np.dtype(code).itemsize, f"the array '{key}'")
            return np.frombuffer(raw, dtype=code)
        if item_type != _STRING:
            raise SapwoodError(f"{self.path}: '{key}' is an array of the type {item_type}")
        if count * 8 > self.size - self._position:
            raise SapwoodError(
                f"{self.path}: '{key}' claims {count} strings, more than the file can hold"
            )
        return [self._string(f"item {index} of '{key}'") for index in range(count)]

    def _read_header(self) -> None:
        if self._take(4, "the magic") != MAGIC:
            raise SapwoodError(f"{self.path}: not a GGUF file: it does not begin with 'GGUF'")
        version = self._integer("I", "the version")
        if version not in VERSIONS:
            if version & 0xFFFF == 0:
                raise SapwoodError(f"{self.path}: a big-endian GGUF file; convert it first")
            raise SapwoodError(f"{self.path}: GGUF version {version}, known are 2 and 3")
        tensors = self._integer("Q", "the number of tensors")
        pairs = self._integer("Q", "the number of keys")
        for count, smallest, what in ((tensors, 24, "tensors"), (pairs, 13, "keys")):
            if count * smallest > self.size:
                raise SapwoodError(
                    f"{self.path}: claims {count} {what}, more than a file of {self.size} bytes "
                    "can hold: damaged; download it again"
                )
        for index in range(pairs):
            key = self._string(f"key {index}")
            value_type = self._integer("I", f"the type of '{key}'")
            if key in self.metadata:
                raise SapwoodError(f"{self.path}: the key '{key}' appears twice")
            self.metadata[key] = self._value(value_type, key)
        infos = [self._tensor_info(index) for index in range(tensors)]
        alignment = self.metadata.get("general.alignment", DEFAULT_ALIGNMENT)
        if not isinstance(alignment, int) or alignment < 1 or alignment & (alignment - 1):
            raise SapwoodError(f"{self.path}: general.alignment is {alignment}, no power of two")
        data = (self._position + alignment - 1) // alignment * alignment
        for name, shape, type_number, offset in infos:
            self._add_tensor(name, shape, type_number, offset, data, alignment)

    def _tensor_info(self, index: int) -> tuple[str, tuple[int, ...], int, int]:
        name = self._string(f"the name of tensor {index}")
        dimensions = self._integer("I", f"the dimensions of tensor '{name}'")
        if not 1 <= dimensions <= MAXIMUM_DIMENSIONS:
            raise SapwoodError(f"{self.path}: tensor '{name}' has {dimensions} dimensions")
        shape = tuple(
            self._integer("Q", f"the shape of tensor '{name}'") for _ in range(dimensions)
        )
        type_number = self._integer("I", f"the type of tensor '{name}'")
        offset = self._integer("Q", f"the offset of tensor '{name}'")
        return name, shape[::-1], type_number, offset

    def _add_tensor(
        self,
        name: str,
        shape: tuple[int, ...],
        type_number: int,
        offset: int,
        data: int,
        alignment: int,
    ) -> None:
        from gguf.constants import GGML_QUANT_SIZES, GGMLQuantizationType

        if name in self.tensors:
            raise SapwoodError(f"{self.path}: tensor '{name}' appears twice")
        try:
            kind = GGMLQuantizationType(type_number)
            block, block_bytes = GGML_QUANT_SIZES[kind]
        except (ValueError, KeyError):
            raise SapwoodError(
                f"{self.path}: tensor '{name}' has the unknown type {type_number}"
            ) from None
        if shape[-1] % block:
            raise SapwoodError(
                f"{self.path}: tensor '{name}' has rows of {shape[-1]} numbers, "
                f"not a multiple of the {block} in a block of {kind.name}"
            )
        if offset % alignment:
            raise SapwoodError(
                f"{self.path}: tensor '{name}' lies at the unaligned offset {offset}"
            )
        size = math.prod(shape) // block * block_bytes
        if data + offset + size > self.size:
            raise SapwoodError(
                f"{self.path}: tensor '{name}' ends at byte {data + offset + size}, the file has "
                f"{self.size}: truncated or damaged; download it again"
            )
        self.tensors[name] = GgufTensorInfo(name, shape, kind.name, data + offset, size)
