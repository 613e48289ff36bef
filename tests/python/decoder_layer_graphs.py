"""Random decoder layers as ONNX graphs: one fused node, or the sequence of single operators."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
import onnxruntime
from onnx import helper

from operator_graphs import (
    DOMAIN,
    graph_bytes,
    random_cache,
    random_packed,
    random_pass,
    session_options,
    value_info,
)

SLOTS = 96
Array = np.ndarray[Any, Any]
OPTIONAL = ["qkv_bias", "q_norm", "k_norm", "attention_post_norm", "mlp_post_norm"]
FEEDS: dict[str, tuple[Any, list[int | str]]] = {
    "slots": (np.dtype(np.int32), ["rows"]),
    "context_slots": (np.dtype(np.int32), ["context"]),
    "path_slots": (np.dtype(np.int32), ["paths"]),
    "path_ranges": (np.dtype(np.int32), ["rows", 2]),
}


@dataclass
class Layer:
    hidden: int
    intermediate: int
    heads: int
    kv_heads: int
    head_dim: int
    window: int
    activation: str
    format: str
    weights: dict[str, Array]

    @property
    def attributes(self) -> dict[str, Any]:
        formats = {f"{part}_format": self.format for part in ("qkv", "output", "gate_up", "down")}
        return {
            "heads": self.heads,
            "kv_heads": self.kv_heads,
            "head_dim": self.head_dim,
            "intermediate": self.intermediate,
            "norm_epsilon": 1e-5,
            "attention_scale": float(self.head_dim**-0.5),
            "window": self.window,
            "activation": self.activation,
            **formats,
        }


def random_layer(generator: np.random.Generator, family: str) -> Layer:
    """A small layer with the options of that family; sizes differ so that none is taken for one."""
    gemma = family == "gemma3"
    hidden, intermediate, heads, kv_heads, head_dim = 64, 96, 6, 2, 16
    form = "int4_g32" if gemma else "int4_g32_min"
    qkv_width = (heads + 2 * kv_heads) * head_dim

    def norm(length: int) -> Array:
        return generator.uniform(0.5, 1.5, length).astype(np.float32)

    weights = {
        "attention_norm": norm(hidden),
        "mlp_norm": norm(hidden),
        "qkv": random_packed(generator, form, qkv_width, hidden),
        "output": random_packed(generator, form, hidden, heads * head_dim),
        "gate_up": random_packed(generator, form, 2 * intermediate, hidden),
        "down": random_packed(generator, form, hidden, intermediate),
    }
    if family == "qwen2":
        weights["qkv_bias"] = generator.normal(size=qkv_width).astype(np.float32)
    if family in ("qwen3", "gemma3"):
        weights |= {"q_norm": norm(head_dim), "k_norm": norm(head_dim)}
    if gemma:
        weights |= {"attention_post_norm": norm(hidden), "mlp_post_norm": norm(hidden)}
    window, activation = (9, "gelu_tanh") if gemma else (0, "silu")
    return Layer(hidden, intermediate, heads, kv_heads, head_dim, window, activation, form, weights)


def random_feeds(
    generator: np.random.Generator, layer: Layer, rows: int, context: int
) -> dict[str, Array]:
    angles = generator.uniform(0, 6, (rows, layer.head_dim // 2))
    return {
        "hidden": generator.normal(size=(rows, layer.hidden)).astype(np.float32),
        "rotary": np.concatenate([np.cos(angles), np.sin(angles)], 1).astype(np.float32),
        **random_pass(generator, rows, context, SLOTS),
        **random_cache(generator, layer.kv_heads, SLOTS, layer.head_dim),
    }


def session(model: bytes, threads: int = 2) -> Any:
    return onnxruntime.InferenceSession(model, session_options(threads))


def _node(
    operator: str, inputs: list[str], outputs: list[str], attributes: dict[str, Any] | None = None
) -> Any:
    node = helper.make_node(operator, inputs, outputs, name=outputs[0], domain=DOMAIN)
    node.attribute.extend(
        helper.make_attribute(key, value) for key, value in (attributes or {}).items()
    )
    return node


def _graph(layer: Layer, nodes: list[Any], constants: dict[str, Array]) -> bytes:
    half, single = np.dtype(np.float16), np.dtype(np.float32)
    inputs = [
        value_info("hidden", single, ["rows", layer.hidden]),
        value_info("rotary", single, ["rows", layer.head_dim]),
        *(value_info(name, dtype, shape) for name, (dtype, shape) in FEEDS.items()),
        value_info("past_keys", half, [layer.kv_heads, "tiles", layer.head_dim, 16]),
        value_info("past_values", half, [layer.kv_heads, "slots", layer.head_dim]),
    ]
    outputs = [
        value_info("hidden_out", single, None),
        value_info("present_keys", half, None),
        value_info("present_values", half, None),
    ]
    return graph_bytes(nodes, inputs, outputs, constants)


def fused_graph(layer: Layer) -> bytes:
    weights = ["attention_norm", "mlp_norm", "qkv", "output", "gate_up", "down"]
    optional = [name if name in layer.weights else "" for name in OPTIONAL]
    node = _node(
        "DecoderLayer",
        ["hidden", "rotary", *FEEDS, "past_keys", "past_values", *weights, *optional],
        ["hidden_out", "present_keys", "present_values"],
        layer.attributes,
    )
    return _graph(layer, [node], layer.weights)


def mlp_graph(layer: Layer) -> bytes:
    """The layer's MLP alone, without its residual: hidden [rows, width] -> y."""
    width, sizes = layer.hidden, {"format": layer.format, "inputs": layer.hidden}
    gate = {**sizes, "intermediate": layer.intermediate, "activation": layer.activation}
    down = {"format": layer.format, "inputs": layer.intermediate, "outputs": width}
    nodes = [
        _node("RmsNorm", ["hidden", "mlp_norm"], ["normed"], {"epsilon": 1e-5}),
        _node("GatedLinear", ["normed", "gate_up"], ["gated"], gate),
        _node("QuantizedLinear", ["gated", "down"], ["y"], down),
    ]
    single = np.dtype(np.float32)
    constants = {name: layer.weights[name] for name in ("mlp_norm", "gate_up", "down")}
    inputs = [value_info("hidden", single, ["rows", width])]
    return graph_bytes(nodes, inputs, [value_info("y", single, None)], constants)


def unfused_graph(layer: Layer) -> bytes:
    """The same layer out of RmsNorm, QuantizedLinear, RotaryEmbedding and so on."""
    nodes: list[Any] = []
    constants = dict(layer.weights)
    given = layer.weights.keys()
    width = layer.heads * layer.head_dim

    def standard(operator: str, inputs: list[str], outputs: list[str], **attributes: Any) -> str:
        nodes.append(helper.make_node(operator, inputs, outputs, **attributes))
        return outputs[0]

    def norm(x: str, weight: str, y: str) -> str:
        nodes.append(_node("RmsNorm", [x, weight], [y], {"epsilon": 1e-5}))
        return y

    def linear(x: str, weight: str, y: str, outputs: int, inputs: int) -> str:
        sizes = {"format": layer.format, "outputs": outputs, "inputs": inputs}
        nodes.append(_node("QuantizedLinear", [x, weight], [y], sizes))
        return y

    def heads(x: str, count: int, y: str) -> str:
        constants[f"{y}_shape"] = np.array([-1, count, layer.head_dim], np.int64)
        return standard("Reshape", [x, f"{y}_shape"], [y])

    qkv_width = width + 2 * layer.kv_heads * layer.head_dim
    x = linear(
        norm("hidden", "attention_norm", "normed"), "qkv", "qkv_out", qkv_width, layer.hidden
    )
    if "qkv_bias" in given:
        x = standard("Add", [x, "qkv_bias"], ["qkv_biased"])
    key_width = layer.kv_heads * layer.head_dim
    constants["split"] = np.array([width, key_width, key_width], np.int64)
    standard("Split", [x, "split"], ["q_flat", "k_flat", "v_flat"], axis=1)
    q, k = heads("q_flat", layer.heads, "q"), heads("k_flat", layer.kv_heads, "k")
    if "q_norm" in given:
        q, k = norm(q, "q_norm", "q_normed"), norm(k, "k_norm", "k_normed")
    nodes.append(_node("RotaryEmbedding", [q, "rotary"], ["q_rotated"]))
    nodes.append(_node("RotaryEmbedding", [k, "rotary"], ["k_rotated"]))
    nodes.append(
        _node(
            "TreeAttention",
            [
                "q_rotated",
                "k_rotated",
                heads("v_flat", layer.kv_heads, "v"),
                *FEEDS,
                "past_keys",
                "past_values",
            ],
            ["attended", "present_keys", "present_values"],
            {"scale": layer.attributes["attention_scale"], "window": layer.window},
        )
    )
    x = linear("attended", "output", "output_out", layer.hidden, width)
    if "attention_post_norm" in given:
        x = norm(x, "attention_post_norm", "output_normed")
    middle = standard("Add", ["hidden", x], ["middle"])
    gated = {
        "format": layer.format,
        "intermediate": layer.intermediate,
        "inputs": layer.hidden,
        "activation": layer.activation,
    }
    normed = norm(middle, "mlp_norm", "mlp_normed")
    nodes.append(_node("GatedLinear", [normed, "gate_up"], ["gated"], gated))
    x = linear("gated", "down", "down_out", layer.hidden, layer.intermediate)
    if "mlp_post_norm" in given:
        x = norm(x, "mlp_post_norm", "down_normed")
    standard("Add", [middle, x], ["hidden_out"])
    return _graph(layer, nodes, constants)
