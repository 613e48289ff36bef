"""What every kind of model file offers: a spec, and tensors by one set of names, read when asked.

Names, whatever the file calls them: ``embedding``, ``head``, ``final_norm`` and per layer
``layers.i.`` + one of ``attention_norm``, ``attention_post_norm``, ``mlp_norm``, ``mlp_post_norm``,
``q``, ``k``, ``v``, ``output``, ``q_bias``, ``k_bias``, ``v_bias``, ``q_norm``, ``k_norm``,
``gate``, ``up``, ``down``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from sapwood.errors import SapwoodError
from sapwood_export.spec import ModelSpec, Rope
from sapwood_export.tokenizer import TokenizerFiles

Rows = NDArray[np.intp]


class SourceTensor(Protocol):
    """One tensor of a model file. Nothing is read before a method is called."""

    @property
    def name(self) -> str:
        """What the file calls it."""

    @property
    def shape(self) -> tuple[int, ...]:
        """[outputs, inputs] or [n]."""

    @property
    def format(self) -> str:
        """The number format in the file, as its own documentation spells it: F32, BF16, Q4_1."""

    def read(self, rows: Rows | None = None) -> NDArray[np.float32]:
        """The values, of the given rows of the first axis or of all, in that order."""

    def read_blocks(self, rows: Rows | None = None) -> NDArray[np.uint8] | None:
        """The raw block codes [rows, bytes a row] of a block format; None for plain numbers."""


@dataclass(frozen=True)
class PermutedRows:
    """A tensor whose rows the file stores in another order: row i is the file's ``order[i]``."""

    tensor: SourceTensor
    order: Rows

    @property
    def name(self) -> str:
        return self.tensor.name

    @property
    def shape(self) -> tuple[int, ...]:
        return self.tensor.shape

    @property
    def format(self) -> str:
        return self.tensor.format

    def read(self, rows: Rows | None = None) -> NDArray[np.float32]:
        return self.tensor.read(self.order if rows is None else self.order[rows])

    def read_blocks(self, rows: Rows | None = None) -> NDArray[np.uint8] | None:
        return self.tensor.read_blocks(self.order if rows is None else self.order[rows])


@dataclass(frozen=True)
class ShiftedTensor:
    """A tensor plus a constant: Gemma stores norm weights as the difference from one."""

    tensor: SourceTensor
    shift: float

    @property
    def name(self) -> str:
        return self.tensor.name

    @property
    def shape(self) -> tuple[int, ...]:
        return self.tensor.shape

    @property
    def format(self) -> str:
        return self.tensor.format

    def read(self, rows: Rows | None = None) -> NDArray[np.float32]:
        shifted: NDArray[np.float32] = self.tensor.read(rows) + np.float32(self.shift)
        return shifted

    def read_blocks(self, rows: Rows | None = None) -> NDArray[np.uint8] | None:
        return None


@dataclass(frozen=True)
class ModelSource:
    """A model file that was opened and checked: shapes agree with the spec, nothing is missing."""

    kind: str  # "gguf", "huggingface"
    path: Path
    name: str  # what the model calls itself
    spec: ModelSpec
    rope_global: Rope
    rope_local: Rope | None  # of the sliding layers, where there are any
    tensors: Mapping[str, SourceTensor]
    tokenizer: TokenizerFiles
    notes: tuple[str, ...] = field(default=())  # what was left out, in words


def expected_shapes(spec: ModelSpec) -> dict[str, tuple[int, ...]]:
    """Every tensor that a model of this spec has, by the names of this module, with its shape."""
    hidden, head_dim = spec.hidden_size, spec.head_dim
    queries, keys = spec.heads * head_dim, spec.kv_heads * head_dim
    shapes: dict[str, tuple[int, ...]] = {"embedding": (spec.vocabulary_size, hidden)}
    for layer in range(spec.layers):
        parts: dict[str, tuple[int, ...]] = {
            "attention_norm": (hidden,),
            "q": (queries, hidden),
            "k": (keys, hidden),
            "v": (keys, hidden),
            "output": (hidden, queries),
            "mlp_norm": (hidden,),
            "gate": (spec.intermediate_size, hidden),
            "up": (spec.intermediate_size, hidden),
            "down": (hidden, spec.intermediate_size),
        }
        if spec.post_norms:
            parts |= {"attention_post_norm": (hidden,), "mlp_post_norm": (hidden,)}
        if spec.qk_norm:
            parts |= {"q_norm": (head_dim,), "k_norm": (head_dim,)}
        if spec.qkv_bias:
            parts |= {"q_bias": (queries,), "k_bias": (keys,), "v_bias": (keys,)}
        shapes |= {f"layers.{layer}.{part}": shape for part, shape in parts.items()}
    shapes["final_norm"] = (hidden,)
    if not spec.tied_head:
        shapes["head"] = (spec.vocabulary_size, hidden)
    return shapes


def check_tensors(
    where: str, spec: ModelSpec, tensors: Mapping[str, SourceTensor], file_names: Mapping[str, str]
) -> None:
    """Refuses a missing tensor or a wrong shape, by the file's own name for it (``file_names``)."""
    for name, shape in expected_shapes(spec).items():
        tensor = tensors.get(name)
        if tensor is None:
            raise SapwoodError(f"{where}: tensor '{file_names[name]}' is missing")
        if tensor.shape != shape:
            raise SapwoodError(
                f"{where}: tensor '{tensor.name}' has shape {list(tensor.shape)}, "
                f"the model's configuration asks for {list(shape)}"
            )


def refuse_unexpected(where: str, names: list[str], family: str) -> None:
    """Refuses tensors that nothing reads: weights left out in silence would change the model."""
    if names:
        more = f" and {len(names) - 1} more" if len(names) > 1 else ""
        raise SapwoodError(
            f"{where}: unexpected tensor '{sorted(names)[0]}'{more}: not part of a {family} model "
            "as Sapwood knows it, so the file's meaning is unclear"
        )
