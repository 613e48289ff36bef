"""The spec of a model from a Hugging Face config.json.

Values that a file leaves out are those of transformers' configuration classes, which is what the
checkpoint's author relied on. Both the older way to write rotary parameters (``rope_theta``,
``rope_scaling``, ``rope_local_base_freq``) and transformers 5's (``rope_parameters``) are read.
"""

from __future__ import annotations

import math
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sapwood.errors import SapwoodError
from sapwood_export.spec import FAMILIES, ModelSpec, Rope, check_layers

_FAMILY_OF_TYPE = {
    "llama": "llama",
    "qwen2": "qwen2",
    "qwen3": "qwen3",
    "gemma3_text": "gemma3",
}
_ACTIVATIONS = {"silu": "silu", "swish": "silu", "gelu_pytorch_tanh": "gelu_tanh"}
_GEMMA3_DEFAULTS = {
    "vocab_size": 262_208,
    "hidden_size": 2304,
    "intermediate_size": 9216,
    "num_hidden_layers": 26,
    "num_attention_heads": 8,
    "num_key_value_heads": 4,
    "head_dim": 256,
    "max_position_embeddings": 131_072,
    "query_pre_attn_scalar": 256,
    "sliding_window": 4096,
    "sliding_window_pattern": 6,
}
_QWEN_WINDOW_LAYERS = 28
_DEFAULT_EPSILON = 1e-6
_DEFAULT_BASE = 10_000.0
_GEMMA3_GLOBAL_BASE, _GEMMA3_LOCAL_BASE = 1_000_000.0, 10_000.0

SLIDING, FULL = "sliding_attention", "full_attention"


class Config:
    """A configuration's values, with one line for each that is missing or of the wrong kind."""

    def __init__(self, where: str, values: Mapping[str, Any], defaults: Mapping[str, Any]) -> None:
        self.where = where
        self._values = {**defaults, **{k: v for k, v in values.items() if v is not None}}

    def get(self, key: str, default: Any = None) -> Any:
        return self._values.get(key, default)

    def number(self, key: str, default: float | None = None) -> float:
        value = self._values.get(key, default)
        if value is None:
            raise SapwoodError(f"{self.where}: '{key}' is missing")
        if not isinstance(value, (int, float)) or isinstance(value, bool):
            raise SapwoodError(f"{self.where}: '{key}' is {value!r}, not a number")
        if isinstance(value, int) and abs(value) >= 2**63:
            raise SapwoodError(f"{self.where}: '{key}' is an integer of more than 64 bits")
        if not math.isfinite(value):
            raise SapwoodError(f"{self.where}: '{key}' is {value}, not finite")
        return float(value)

    def integer(self, key: str, default: int | None = None) -> int:
        value = self.number(key, default)
        if value != int(value):
            raise SapwoodError(f"{self.where}: '{key}' is {value}, not a whole number")
        return int(value)

    def flag(self, key: str, default: bool) -> bool:
        value = self._values.get(key, default)
        if not isinstance(value, bool):
            raise SapwoodError(f"{self.where}: '{key}' is {value!r}, neither true nor false")
        return value


def read_spec(path: Path, values: Mapping[str, Any]) -> tuple[ModelSpec, Rope, Rope | None]:
    """The spec and the rotary frequencies of all and of sliding layers. ``path`` is the file's."""
    text, where = _text_config(path, values)
    model_type = text.get("model_type")
    family = _FAMILY_OF_TYPE.get(str(model_type))
    if family is None:
        raise SapwoodError(
            f"{path}: unknown family '{model_type}'; known are {', '.join(FAMILIES)}"
        )
    gemma = family == "gemma3"
    config = Config(where, text, _GEMMA3_DEFAULTS if gemma else {})
    _refuse_unsupported(config, values)
    hidden, heads = config.integer("hidden_size"), config.integer("num_attention_heads")
    layers = config.integer("num_hidden_layers")
    check_layers(layers, where)
    if heads < 1 or hidden < 1:
        raise SapwoodError(f"{where}: {heads} attention heads for {hidden} numbers")
    head_dim = config.integer("head_dim", 128 if family == "qwen3" else hidden // heads)
    window, sliding = _sliding(config, family, layers)
    query_scalar = config.number("query_pre_attn_scalar") if gemma else float(head_dim)
    if not query_scalar > 0:
        raise SapwoodError(f"{where}: 'query_pre_attn_scalar' is {query_scalar}")
    spec = ModelSpec(
        family=family,
        vocabulary_size=config.integer("vocab_size"),
        hidden_size=hidden,
        intermediate_size=config.integer("intermediate_size"),
        layers=layers,
        heads=heads,
        kv_heads=config.integer("num_key_value_heads", heads),
        head_dim=head_dim,
        context_length=config.integer("max_position_embeddings"),
        norm_epsilon=config.number("rms_norm_eps", _DEFAULT_EPSILON),
        attention_scale=query_scalar**-0.5,
        embedding_scale=hidden**0.5 if gemma else 1.0,
        activation=_activation(config, gemma),
        qkv_bias=family == "qwen2",
        qk_norm=family in ("qwen3", "gemma3"),
        post_norms=gemma,
        tied_head=_tied(path, values, text, gemma),
        sliding_window=window if any(sliding) else 0,
        layer_is_sliding=sliding,
    )
    spec.check(str(path))
    rope_global, rope_sliding = _ropes(config, gemma)
    return spec, rope_global, rope_sliding if any(sliding) else None


def _text_config(path: Path, values: Mapping[str, Any]) -> tuple[Mapping[str, Any], str]:
    """The language model's part: Gemma 3 nests it when it also sees pictures."""
    if values.get("model_type") != "gemma3":
        return values, str(path)
    text = values.get("text_config")
    if not isinstance(text, dict):
        raise SapwoodError(f"{path}: 'text_config' is missing")
    return {"model_type": "gemma3_text", **text}, f"{path}, text_config"


def _refuse_unsupported(config: Config, values: Mapping[str, Any]) -> None:
    if values.get("quantization_config") is not None:
        raise SapwoodError(
            f"{config.where}: the weights are already quantised ('quantization_config'); "
            "give the unquantised model or a GGUF file"
        )
    for key in ("attention_bias", "mlp_bias", "use_bidirectional_attention"):
        if config.flag(key, False):
            raise SapwoodError(f"{config.where}: '{key}' is not supported")
    for key in ("attn_logit_softcapping", "final_logit_softcapping"):
        if config.get(key) is not None:
            raise SapwoodError(f"{config.where}: '{key}' is not supported")


def _activation(config: Config, gemma: bool) -> str:
    if gemma:
        name = config.get("hidden_activation") or config.get("hidden_act") or "gelu_pytorch_tanh"
    else:
        name = config.get("hidden_act", "silu")
    if name not in _ACTIVATIONS:
        raise SapwoodError(f"{config.where}: the activation '{name}' is not supported")
    return _ACTIVATIONS[name]


def _tied(path: Path, values: Mapping[str, Any], text: Mapping[str, Any], default: bool) -> bool:
    declared = [
        part["tie_word_embeddings"]
        for part in (values, text)
        if part.get("tie_word_embeddings") is not None
    ]
    if any(not isinstance(value, bool) for value in declared):
        raise SapwoodError(f"{path}: 'tie_word_embeddings' is neither true nor false")
    if len(set(declared)) > 1:
        raise SapwoodError(f"{path}: 'tie_word_embeddings' differs between config and text_config")
    return bool(declared[0]) if declared else default


def _sliding(config: Config, family: str, layers: int) -> tuple[int, tuple[bool, ...]]:
    """The window, and for each layer whether it has one."""
    types = config.get("layer_types")
    if types is not None:
        if not isinstance(types, list) or len(types) != layers:
            raise SapwoodError(f"{config.where}: 'layer_types' does not list {layers} layers")
        for kind in types:
            if kind not in (SLIDING, FULL):
                raise SapwoodError(f"{config.where}: the layer type '{kind}' is not supported")
    if family == "llama":
        if types is not None and SLIDING in types:
            raise SapwoodError(f"{config.where}: sliding layers in a llama are not supported")
        return 0, (False,) * layers
    if family == "gemma3":
        if types is None:
            pattern = config.integer("sliding_window_pattern")
            if pattern < 1:
                raise SapwoodError(f"{config.where}: 'sliding_window_pattern' is {pattern}")
            types = [SLIDING if (layer + 1) % pattern else FULL for layer in range(layers)]
    else:
        if not config.flag("use_sliding_window", False):
            return 0, (False,) * layers
        if types is None:
            first = config.integer("max_window_layers", _QWEN_WINDOW_LAYERS)
            types = [SLIDING if layer >= first else FULL for layer in range(layers)]
    return config.integer("sliding_window", 4096), tuple(kind == SLIDING for kind in types)


def _ropes(config: Config, gemma: bool) -> tuple[Rope, Rope]:
    """The rotary frequencies of full and of sliding layers, in either way of writing them."""
    parameters = _object(config, "rope_parameters")
    scaling = _object(config, "rope_scaling")
    nested = {FULL, SLIDING} & set(parameters)
    if not gemma and not nested:
        base = config.number("rope_theta", _DEFAULT_BASE)
        rope = _rope(config, {"rope_theta": base, **parameters, **scaling})
        return rope, rope
    if parameters and not nested:
        raise SapwoodError(
            f"{config.where}: 'rope_parameters' has to name {FULL} and {SLIDING} for this family"
        )
    bases = {
        FULL: config.number("rope_theta", _GEMMA3_GLOBAL_BASE if gemma else _DEFAULT_BASE),
        SLIDING: config.number("rope_local_base_freq", _GEMMA3_LOCAL_BASE)
        if gemma
        else config.number("rope_theta", _DEFAULT_BASE),
    }
    ropes = {}
    for kind, base in bases.items():
        own = parameters.get(kind) or {}
        if not isinstance(own, dict):
            raise SapwoodError(f"{config.where}: 'rope_parameters' for {kind} is no object")
        # Gemma's scaling stretches the layers that see everything, not the sliding ones.
        extra = scaling if kind == FULL or not gemma else {}
        ropes[kind] = _rope(config, {"rope_theta": base, **own, **extra})
    return ropes[FULL], ropes[SLIDING]


def _object(config: Config, key: str) -> dict[str, Any]:
    value = config.get(key)
    if value is None:
        return {}
    if not isinstance(value, dict):
        raise SapwoodError(f"{config.where}: '{key}' is no object")
    return value


def _rope(config: Config, values: Mapping[str, Any]) -> Rope:
    where = f"{config.where}, rotary parameters"
    parameters = Config(where, values, {})
    kind = parameters.get("rope_type") or parameters.get("type") or "default"
    base = parameters.number("rope_theta")
    partial = parameters.number("partial_rotary_factor", config.number("partial_rotary_factor", 1))
    if partial != 1:
        raise SapwoodError(f"{where}: rotation of a part of each head is not supported")
    if base <= 0:
        raise SapwoodError(f"{where}: 'rope_theta' is {base}")
    if kind == "default":
        return Rope(base=base)
    if kind not in ("linear", "llama3"):
        raise SapwoodError(f"{where}: rope scaling '{kind}' is not supported")
    factor = parameters.number("factor")
    if factor <= 0:
        raise SapwoodError(f"{where}: 'factor' is {factor}")
    if kind == "linear":
        return Rope(base=base, scaling="linear", factor=factor)
    low, high = parameters.number("low_freq_factor"), parameters.number("high_freq_factor")
    original = parameters.integer(
        "original_max_position_embeddings", config.integer("max_position_embeddings")
    )
    if not (0 < low < high and original > 0):
        raise SapwoodError(f"{where}: llama3 scaling needs 0 < low_freq_factor < high_freq_factor")
    return Rope(
        base=base,
        scaling="llama3",
        factor=factor,
        low_frequency_factor=low,
        high_frequency_factor=high,
        original_context=original,
    )
