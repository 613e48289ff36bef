"""Which packed tensors a bundle has, and of which rows of the source each is made."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sapwood.errors import SapwoodError
from sapwood_export.packing import ALIGNMENT, pack, packed_bytes
from sapwood_export.quantize.formats import LinearFormat, QuantizedRows
from sapwood_export.quantize.policy import Quantization
from sapwood_export.quantize.repack import CODES_KEPT, EXACT, repack
from sapwood_export.quantize.round_to_nearest import LARGEST_MAGNITUDE, quantize
from sapwood_export.sources.base import ModelSource, Rows, SourceTensor
from sapwood_export.spec import PANEL, ModelSpec

CHUNK_NUMBERS = 1 << 23  # weights held as float32 at a time

REPACKED = "repacked"  # exactly
CODES_REPACKED = "codes-repacked"  # the codes exactly, their scales rounded to fp16
ROUNDED = "round-to-nearest"

INTERMEDIATE_MULTIPLE = PANEL  # gate and up are interleaved by whole panels


@dataclass(frozen=True)
class PackedTensor:
    """A quantised [outputs, inputs] tensor, made of the rows of one or more source tensors."""

    name: str
    form: LinearFormat
    parts: tuple[SourceTensor, ...]
    part_of_row: NDArray[np.uint8]  # [outputs]: which part a row comes from
    row_in_part: Rows  # [outputs]

    @property
    def format(self) -> str:
        return self.form.name

    @property
    def shape(self) -> tuple[int, int]:
        return len(self.row_in_part), self.parts[0].shape[1]

    @property
    def size(self) -> int:
        return packed_bytes(self.form, *self.shape)

    def method(self, part: SourceTensor) -> str:
        """How a part's rows come into the bundle's format, in the manifest's words."""
        pair = (part.format, self.form.name)
        if pair in EXACT:
            return REPACKED
        return CODES_REPACKED if pair in CODES_KEPT else ROUNDED

    def chunks(self) -> Iterator[NDArray[np.uint8]]:
        """The packed bytes, a few panels at a time."""
        outputs, inputs = self.shape
        step = max(1, CHUNK_NUMBERS // inputs // PANEL) * PANEL
        for begin in range(0, outputs, step):
            yield pack(self.form, self._rows(begin, min(begin + step, outputs))).reshape(-1)

    def _rows(self, begin: int, end: int) -> QuantizedRows:
        if len(self.parts) == 1:
            return self._part_rows(self.parts[0], self.row_in_part[begin:end])
        groups = self.shape[1] // self.form.group
        codes = np.empty((end - begin, self.shape[1]), dtype=np.uint8)
        scales = np.empty((end - begin, groups), dtype=np.float16)
        minima = np.empty_like(scales) if self.form.has_min else None
        for number, part in enumerate(self.parts):
            here = np.flatnonzero(self.part_of_row[begin:end] == number)
            if not len(here):
                continue
            rows = self._part_rows(part, self.row_in_part[begin:end][here])
            codes[here], scales[here] = rows.codes, rows.scales
            if minima is not None:
                minima[here] = rows.minima
        return QuantizedRows(codes, scales, minima)

    def _part_rows(self, part: SourceTensor, rows: Rows) -> QuantizedRows:
        if self.method(part) != ROUNDED:
            blocks = part.read_blocks(rows)
            assert blocks is not None
            return repack(blocks, part.format, self.form.name)
        values = part.read(rows)
        if not np.isfinite(values).all():
            raise SapwoodError(f"tensor '{part.name}' holds values that are not finite")
        if np.abs(values).max(initial=0.0) > LARGEST_MAGNITUDE:
            raise SapwoodError(f"tensor '{part.name}' holds values too large for an fp16 scale")
        return quantize(values, self.form)


@dataclass(frozen=True)
class PlainTensor:
    """A small tensor as it is: a norm, a bias, rotary frequencies; or, in int32, token ids."""

    name: str
    values: NDArray[np.float32] | NDArray[np.int32]

    @property
    def format(self) -> str:
        return str(self.values.dtype.name)

    @property
    def shape(self) -> tuple[int, ...]:
        return self.values.shape

    @property
    def size(self) -> int:
        return int(self.values.nbytes)

    def chunks(self) -> Iterator[NDArray[np.uint8]]:
        little_endian = self.values.astype(self.values.dtype.newbyteorder("<"))
        yield np.ascontiguousarray(little_endian).view(np.uint8).reshape(-1)


BundleTensor = PackedTensor | PlainTensor


def plan_tensors(source: ModelSource, quantization: Quantization) -> list[BundleTensor]:
    """Every tensor of the bundle in the order of a pass. Norms are read, weights are not yet."""
    spec = source.spec
    if spec.intermediate_size % INTERMEDIATE_MULTIPLE:
        raise SapwoodError(
            f"{source.path}: an intermediate size of {spec.intermediate_size} is not a multiple "
            f"of {INTERMEDIATE_MULTIPLE}"
        )
    planner = _Planner(source, quantization)
    planner.table("embedding")
    planner.plain("rope.global", source.rope_global.inverse_frequencies(spec.head_dim))
    if source.rope_local is not None:
        planner.plain("rope.local", source.rope_local.inverse_frequencies(spec.head_dim))
    for layer in range(spec.layers):
        planner.layer(f"layers.{layer}.", spec)
    planner.copy("final_norm")
    if not spec.tied_head:
        planner.table("head")
    return planner.tensors


def offsets(tensors: list[BundleTensor]) -> list[int]:
    """Where each tensor begins in the weights file: one behind the other, aligned."""
    result, end = [], 0
    for tensor in tensors:
        result.append(end)
        end += (tensor.size + ALIGNMENT - 1) // ALIGNMENT * ALIGNMENT
    return result


class _Planner:
    def __init__(self, source: ModelSource, quantization: Quantization) -> None:
        self._source, self._quantization = source, quantization
        self.tensors: list[BundleTensor] = []

    def plain(self, name: str, values: NDArray[np.float32]) -> None:
        if not np.isfinite(values).all():
            raise SapwoodError(f"{self._source.path}: '{name}' holds values that are not finite")
        self.tensors.append(PlainTensor(name, values))

    def copy(self, name: str) -> None:
        self.plain(name, self._source.tensors[name].read())

    def table(self, name: str) -> None:
        part = self._source.tensors[name]
        self._packed(name, self._quantization.table_format(), [part], np.arange(part.shape[0]))

    def layer(self, prefix: str, spec: ModelSpec) -> None:
        self.copy(prefix + "attention_norm")
        sizes = [spec.heads * spec.head_dim] + 2 * [spec.kv_heads * spec.head_dim]
        self._linear(
            prefix + "qkv",
            [prefix + part for part in "qkv"],
            np.concatenate([np.arange(size) for size in sizes]),
            np.repeat(np.arange(3), sizes),
        )
        if spec.qkv_bias:
            biases = [self._source.tensors[f"{prefix}{part}_bias"].read() for part in "qkv"]
            self.plain(prefix + "qkv_bias", np.concatenate(biases))
        if spec.qk_norm:
            self.copy(prefix + "q_norm")
            self.copy(prefix + "k_norm")
        self._linear(prefix + "output", [prefix + "output"])
        if spec.post_norms:
            self.copy(prefix + "attention_post_norm")
        self.copy(prefix + "mlp_norm")
        row = np.arange(2 * spec.intermediate_size)
        panel = row // PANEL
        self._linear(
            prefix + "gate_up",
            [prefix + "gate", prefix + "up"],
            panel // 2 * PANEL + row % PANEL,
            panel % 2,
        )
        self._linear(prefix + "down", [prefix + "down"])
        if spec.post_norms:
            self.copy(prefix + "mlp_post_norm")

    def _linear(
        self,
        name: str,
        part_names: list[str],
        row_in_part: Rows | None = None,
        part_of_row: Rows | None = None,
    ) -> None:
        parts = [self._source.tensors[part] for part in part_names]
        if row_in_part is None:
            row_in_part = np.arange(parts[0].shape[0])
        form = self._quantization.linear_format(parts)
        self._packed(name, form, parts, row_in_part, part_of_row)

    def _packed(
        self,
        name: str,
        form: LinearFormat,
        parts: list[SourceTensor],
        row_in_part: Rows,
        part_of_row: Rows | None = None,
    ) -> None:
        inputs = parts[0].shape[1]
        if inputs % form.group:
            raise SapwoodError(
                f"{self._source.path}: '{name}' has {inputs} inputs, not a multiple of the group "
                f"of {form.group} of {form.name}; choose a format with a smaller group"
            )
        if part_of_row is None:
            part_of_row = np.zeros(len(row_in_part), dtype=np.intp)
        self.tensors.append(
            PackedTensor(name, form, tuple(parts), part_of_row.astype(np.uint8), row_in_part)
        )
