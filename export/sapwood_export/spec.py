"""What a decoder of the Llama, Qwen and Gemma families is made of, as the manifest stores it."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sapwood.errors import SapwoodError

FAMILIES = ("llama", "qwen2", "qwen3", "gemma3")
ACTIVATIONS = ("silu", "gelu_tanh")

INPUT_MULTIPLE = 32  # weights and activations are quantised in groups of 32 inputs
PANEL = 16  # outputs a panel: gate and up are interleaved by panels
LARGEST_LAYERS = 4096  # far above any model; a damaged file may claim billions
HEAD_MULTIPLE = 16  # the attention kernels take head dimensions in vectors of 16


@dataclass(frozen=True)
class ModelSpec:
    """One decoder. Field for field the manifest's ``target.spec``.

    A sliding layer (``layer_is_sliding``) sees ``sliding_window`` positions, its own included, and
    rotates with ``rope.local``; every other layer sees all and rotates with ``rope.global``.
    """

    family: str
    vocabulary_size: int
    hidden_size: int
    intermediate_size: int
    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    context_length: int
    norm_epsilon: float
    attention_scale: float  # multiplies q . k
    embedding_scale: float = 1.0
    activation: str = "silu"
    qkv_bias: bool = False
    qk_norm: bool = False
    post_norms: bool = False
    tied_head: bool = False
    sliding_window: int = 0  # positions; 0: no layer slides
    layer_is_sliding: tuple[bool, ...] = ()

    def to_manifest(self) -> dict[str, Any]:
        """The spec as JSON values, in declaration order."""
        values = asdict(self)
        values["layer_is_sliding"] = list(self.layer_is_sliding)
        return values

    @staticmethod
    def from_manifest(values: Mapping[str, Any]) -> ModelSpec:
        """The inverse of ``to_manifest``; a missing or unknown key is an error."""
        known = set(ModelSpec.__dataclass_fields__)
        for name in sorted(known - set(values)):
            raise SapwoodError(f"the manifest's spec lacks '{name}': export the model again")
        for name in sorted(set(values) - known):
            raise SapwoodError(
                f"the manifest's spec has an unknown entry '{name}': update Sapwood or export again"
            )
        for name, field_ in ModelSpec.__dataclass_fields__.items():
            if not _has_kind(values[name], str(field_.type)):
                raise SapwoodError(
                    f"the manifest's spec: '{name}' is {values[name]!r}, which it cannot be: "
                    "export the model again"
                )
        spec = ModelSpec(**{**values, "layer_is_sliding": tuple(values["layer_is_sliding"])})
        spec.check("the manifest")
        return spec

    @property
    def qkv_outputs(self) -> int:
        return (self.heads + 2 * self.kv_heads) * self.head_dim

    def check(self, where: str) -> None:
        """Refuses sizes that contradict each other or that the kernels cannot take."""
        for name in (
            "vocabulary_size",
            "hidden_size",
            "intermediate_size",
            "layers",
            "heads",
            "kv_heads",
            "head_dim",
            "context_length",
        ):
            if int(getattr(self, name)) < 1:
                raise SapwoodError(f"{where}: {name} is {getattr(self, name)}, must be positive")
        check_layers(self.layers, where)
        if self.family not in FAMILIES:
            raise SapwoodError(
                f"{where}: unknown family '{self.family}'; known are {', '.join(FAMILIES)}"
            )
        if self.activation not in ACTIVATIONS:
            raise SapwoodError(f"{where}: unknown activation '{self.activation}'")
        if self.heads % self.kv_heads:
            raise SapwoodError(
                f"{where}: {self.heads} attention heads are not a multiple of "
                f"{self.kv_heads} key-value heads"
            )
        if self.head_dim % HEAD_MULTIPLE:
            raise SapwoodError(
                f"{where}: a head dimension of {self.head_dim} is not a multiple of {HEAD_MULTIPLE}"
            )
        for name, size in (
            ("hidden size", self.hidden_size),
            ("intermediate size", self.intermediate_size),
            ("heads * head dimension", self.heads * self.head_dim),
        ):
            if size % INPUT_MULTIPLE:
                raise SapwoodError(
                    f"{where}: {name} is {size}, not a multiple of {INPUT_MULTIPLE}, "
                    "which the quantised layers need"
                )
        if len(self.layer_is_sliding) != self.layers:
            raise SapwoodError(
                f"{where}: {len(self.layer_is_sliding)} layer types for {self.layers} layers"
            )
        if any(self.layer_is_sliding) and self.sliding_window < 1:
            raise SapwoodError(f"{where}: sliding layers without a sliding window")
        for name, value in (
            ("norm epsilon", self.norm_epsilon),
            ("attention scale", self.attention_scale),
            ("embedding scale", self.embedding_scale),
        ):
            if not (math.isfinite(value) and value > 0):
                raise SapwoodError(f"{where}: {name} is {value}, must be positive and finite")


_LARGEST = 2**31 - 1  # of any integer: the runtime's are 32 bits


def _has_kind(value: Any, kind: str) -> bool:
    """Whether a JSON value can be a field of this type, as the class above spells it."""
    if kind == "int":
        return isinstance(value, int) and not isinstance(value, bool) and abs(value) <= _LARGEST
    if kind == "float":
        return isinstance(value, float) or _has_kind(value, "int")
    if kind == "tuple[bool, ...]":
        return isinstance(value, list) and all(isinstance(entry, bool) for entry in value)
    return isinstance(value, {"str": str, "bool": bool}[kind])


def check_layers(layers: int, where: str) -> None:
    """Refuses a number of layers that would make everything listed by layer huge."""
    if not 1 <= layers <= LARGEST_LAYERS:
        raise SapwoodError(f"{where}: {layers} layers; 1 to {LARGEST_LAYERS} are possible")


@dataclass(frozen=True)
class Rope:
    """Rotary frequencies of one kind of layer, before they become a table of data."""

    base: float
    scaling: str = "none"  # "none", "linear", "llama3", "factors"
    factor: float = 1.0
    low_frequency_factor: float = 1.0
    high_frequency_factor: float = 4.0
    original_context: int = 8192
    factors: tuple[float, ...] = field(default=(), repr=False)  # "factors": one per frequency

    def inverse_frequencies(self, head_dim: int) -> NDArray[np.float32]:
        """float32 [head_dim / 2]: radians a position, after scaling. Computed in double.

        "linear" divides every frequency by ``factor`` (Chen et al. 2023, position interpolation).
        "llama3" (Llama 3.1) divides those with a wavelength above ``original_context /
        low_frequency_factor`` by ``factor``, keeps those below ``original_context /
        high_frequency_factor``, and blends linearly in between. "factors" divides by a list, as
        GGUF stores Llama 3's.
        """
        exponents = np.arange(0, head_dim, 2, dtype=np.float64) / head_dim
        frequencies: NDArray[np.float64] = np.power(float(self.base), -exponents)
        if self.scaling == "linear":
            frequencies = frequencies / self.factor
        elif self.scaling == "llama3":
            turns = self.original_context * frequencies / (2 * math.pi)
            keep = (turns - self.low_frequency_factor) / (
                self.high_frequency_factor - self.low_frequency_factor
            )
            keep = np.clip(keep, 0.0, 1.0)
            frequencies = keep * frequencies + (1 - keep) * frequencies / self.factor
        elif self.scaling == "factors":
            frequencies = frequencies / np.asarray(self.factors, dtype=np.float64)
        return frequencies.astype(np.float32)
