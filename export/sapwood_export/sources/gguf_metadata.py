"""The spec of a model from a GGUF file's key-values."""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sapwood.errors import SapwoodError
from sapwood_export.spec import FAMILIES, ModelSpec, Rope, check_layers

GEMMA3_SLIDING_PATTERN = 6  # every sixth layer sees all; the files do not say so
GEMMA3_LOCAL_BASE = 10000.0
GEMMA3_27B_LAYERS = 62  # the one Gemma 3 whose attention scale is not head_dim^-1/2


class _Keys:
    """The architecture's keys, with one line for each that is missing or of the wrong kind."""

    def __init__(self, path: Path, metadata: Mapping[str, Any], architecture: str) -> None:
        self._path, self._metadata, self._prefix = path, metadata, architecture + "."

    def get(self, key: str, default: Any = None) -> Any:
        return self._metadata.get(self._prefix + key, default)

    def number(self, key: str, default: float | None = None) -> float:
        value = self.get(key, default)
        if value is None:
            raise SapwoodError(f"{self._path}: the key '{self._prefix}{key}' is missing")
        if isinstance(value, (str, list)):
            raise SapwoodError(f"{self._path}: '{self._prefix}{key}' is not a number")
        if isinstance(value, np.ndarray):
            distinct = np.unique(value)
            if len(distinct) != 1:
                raise SapwoodError(
                    f"{self._path}: '{self._prefix}{key}' differs from layer to layer, "
                    "which Sapwood does not support"
                )
            value = distinct[0].item()
        if not math.isfinite(value):
            raise SapwoodError(f"{self._path}: '{self._prefix}{key}' is {value}, not finite")
        return float(value)

    def integer(self, key: str, default: int | None = None) -> int:
        value = self.number(key, default)
        if value != int(value):
            raise SapwoodError(f"{self._path}: '{self._prefix}{key}' is {value}, no whole number")
        return int(value)

    def size(self, key: str, default: int | None = None) -> int:
        value = self.integer(key, default)
        if value < 1:
            raise SapwoodError(f"{self._path}: '{self._prefix}{key}' is {value}, must be positive")
        return value


def read_spec(
    path: Path,
    metadata: Mapping[str, Any],
    *,
    tied_head: bool,
    vocabulary: int,
    qkv_bias: bool,
    rope_factors: NDArray[np.float32] | None,
) -> tuple[ModelSpec, Rope, Rope | None]:
    """The spec and the rotary frequencies of all and of sliding layers.

    ``rope_factors`` is the tensor rope_freqs.weight, by which Llama 3's files scale frequencies.
    """
    architecture = metadata.get("general.architecture")
    if not isinstance(architecture, str):
        raise SapwoodError(f"{path}: the key 'general.architecture' is missing")
    if architecture not in FAMILIES:
        raise SapwoodError(
            f"{path}: unknown family '{architecture}'; known are {', '.join(FAMILIES)}"
        )
    keys = _Keys(path, metadata, architecture)
    for key in ("attn_logit_softcapping", "final_logit_softcapping"):
        if keys.number(key, 0.0) != 0.0:
            raise SapwoodError(f"{path}: {key} is set, which no family known here uses")
    if keys.integer("expert_count", 0) > 1:
        raise SapwoodError(f"{path}: a mixture of experts, which Sapwood does not support")
    hidden, heads = keys.size("embedding_length"), keys.size("attention.head_count")
    layers = keys.size("block_count")
    check_layers(layers, str(path))
    head_dim = keys.size("attention.key_length", hidden // heads)
    if keys.integer("attention.value_length", head_dim) != head_dim:
        raise SapwoodError(f"{path}: keys and values of different length are not supported")
    if keys.integer("rope.dimension_count", head_dim) != head_dim:
        raise SapwoodError(f"{path}: rotation of a part of each head is not supported")
    gemma = architecture == "gemma3"
    window, sliding = _sliding(path, keys, layers) if gemma else (0, (False,) * layers)
    scale = head_dim**-0.5
    if gemma and layers == GEMMA3_27B_LAYERS:
        scale = (hidden / heads) ** -0.5
    spec = ModelSpec(
        family=architecture,
        vocabulary_size=vocabulary or keys.size("vocab_size"),
        hidden_size=hidden,
        intermediate_size=keys.size("feed_forward_length"),
        layers=layers,
        heads=heads,
        kv_heads=keys.size("attention.head_count_kv", heads),
        head_dim=head_dim,
        context_length=keys.size("context_length"),
        norm_epsilon=keys.number("attention.layer_norm_rms_epsilon"),
        attention_scale=scale,
        embedding_scale=hidden**0.5 if gemma else 1.0,
        activation="gelu_tanh" if gemma else "silu",
        qkv_bias=qkv_bias or architecture == "qwen2",
        qk_norm=architecture in ("qwen3", "gemma3"),
        post_norms=gemma,
        tied_head=tied_head,
        sliding_window=window if any(sliding) else 0,
        layer_is_sliding=sliding,
    )
    spec.check(str(path))
    rope = _rope(path, keys, head_dim, rope_factors, 1e6 if gemma else 1e4)
    local_base = _base(path, keys.number("rope.freq_base_swa", GEMMA3_LOCAL_BASE))
    return spec, rope, Rope(base=local_base) if any(sliding) else None


def _sliding(path: Path, keys: _Keys, layers: int) -> tuple[int, tuple[bool, ...]]:
    window = keys.size("attention.sliding_window")
    pattern = keys.get("attention.sliding_window_pattern")
    if isinstance(pattern, np.ndarray):
        if len(pattern) != layers:
            raise SapwoodError(f"{path}: a sliding pattern of {len(pattern)} for {layers} layers")
        return window, tuple(bool(entry) for entry in pattern)
    period = keys.size("attention.sliding_window_pattern", GEMMA3_SLIDING_PATTERN)
    return window, tuple((layer + 1) % period != 0 for layer in range(layers))


def _base(path: Path, base: float) -> float:
    if base <= 0:
        raise SapwoodError(f"{path}: a rope base of {base}")
    return base


def _rope(
    path: Path,
    keys: _Keys,
    head_dim: int,
    factors: NDArray[np.float32] | None,
    default_base: float,
) -> Rope:
    base = _base(path, keys.number("rope.freq_base", default_base))
    kind = keys.get("rope.scaling.type", "none")
    factor = keys.number("rope.scaling.factor", 1.0)
    if keys.get("rope.scaling.type") is None and keys.get("rope.scale_linear") is not None:
        kind, factor = "linear", keys.number("rope.scale_linear")  # what old converters wrote
    if kind not in ("none", "linear"):
        raise SapwoodError(f"{path}: rope scaling '{kind}' is not supported")
    if factors is not None:
        if factors.shape != (head_dim // 2,) or not np.all(factors > 0):
            raise SapwoodError(
                f"{path}: tensor 'rope_freqs.weight' has shape {list(factors.shape)} or holds "
                f"factors that are not positive; {head_dim // 2} are needed"
            )
        if kind == "linear" and factor != 1.0:
            raise SapwoodError(f"{path}: both linear rope scaling and rope_freqs.weight")
        return Rope(base=base, scaling="factors", factors=tuple(float(f) for f in factors))
    if kind == "linear":
        if not factor > 0:
            raise SapwoodError(f"{path}: a linear rope factor of {factor}")
        return Rope(base=base, scaling="linear", factor=factor)
    return Rope(base=base)
