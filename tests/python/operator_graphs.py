"""One-node ONNX graphs of our operators, and what each operator computes, in numpy."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
import pytest
from onnx import helper, numpy_helper

from sapwood_export.packing import pack, unpack
from sapwood_export.quantize.formats import LinearFormat, QuantizedRows, linear_format

DOMAIN = "com.endpoint.ai"
PANEL = 16
HEADS, KV_HEADS, HEAD_DIM, SLOTS = 4, 2, 32, 96  # of attention_inputs
OUTPUTS: dict[str, list[str]] = {
    "TreeAttention": ["out", "present_keys", "present_values"],
    "DecoderLayer": ["hidden_out", "present_keys", "present_values"],
    "DynamicTreePrune": ["kept_indices", "importance_weights", "tree_mask"],
    "BlockSparseVerify": ["accepted_length", "new_kv_indices", "next_token"],
}
OUTPUT_TYPES: dict[str, Any] = {
    "present_keys": np.float16,
    "present_values": np.float16,
    "kept_indices": np.int32,
    "tree_mask": np.uint8,
    "accepted_length": np.int32,
    "new_kv_indices": np.int32,
    "next_token": np.int32,
}
Inputs = Mapping[str, "np.ndarray[Any, Any] | None"]


def operators_library() -> Path:
    """Our plug-in for ONNX Runtime, from this environment or the one that a build names."""
    named = os.environ.get("SAPWOOD_OPERATORS_LIBRARY")
    if named:
        return Path(named)
    runtime = pytest.importorskip("sapwood._runtime", reason="sapwood is not built")
    library = Path(runtime.__file__).with_name("libsapwood_onnxruntime.so")
    if not library.is_file():
        pytest.skip("built without ONNX Runtime's headers")
    return library


def session_options(threads: int | str = 2) -> onnxruntime.SessionOptions:
    options = onnxruntime.SessionOptions()
    options.log_severity_level = 4
    options.intra_op_num_threads = 1
    options.add_session_config_entry("sapwood.threads", str(threads))
    options.register_custom_ops_library(str(operators_library()))
    return options


def value_info(name: str, dtype: Any, shape: Sequence[int | str | None] | None) -> Any:
    return helper.make_tensor_value_info(name, helper.np_dtype_to_tensor_dtype(dtype), shape)


def graph_bytes(
    nodes: Sequence[Any],
    inputs: Sequence[Any],
    outputs: Sequence[Any],
    constants: Mapping[str, np.ndarray[Any, Any]],
) -> bytes:
    initializers = [numpy_helper.from_array(array, name) for name, array in constants.items()]
    graph = helper.make_graph(nodes, "test", inputs, outputs, initializers)
    opsets = [helper.make_opsetid("", 20), helper.make_opsetid(DOMAIN, 1)]
    model = helper.make_model(graph, opset_imports=opsets, ir_version=10)
    serialized: bytes = model.SerializeToString()
    return serialized


def one_node(
    operator: str,
    inputs: Inputs,
    attributes: Mapping[str, Any],
    *,
    constants: Sequence[str] = (),
    shapes: Mapping[str, Sequence[int | str | None]] | None = None,
) -> bytes:
    """A model of one node. Inputs named in ``constants`` become initialisers; None is left out."""
    given = {name: array for name, array in inputs.items() if array is not None}
    names = [name if name in given else "" for name in inputs]
    outputs = OUTPUTS.get(operator, ["y"])
    node = helper.make_node(operator, names, outputs, name="the_node", domain=DOMAIN)
    node.attribute.extend(helper.make_attribute(key, value) for key, value in attributes.items())
    fed = [
        value_info(name, array.dtype, (shapes or {}).get(name, [None] * array.ndim))
        for name, array in given.items()
        if name not in constants
    ]
    results = [value_info(n, np.dtype(OUTPUT_TYPES.get(n, np.float32)), None) for n in outputs]
    return graph_bytes([node], fed, results, {name: given[name] for name in constants})


def run_operator(
    operator: str,
    inputs: Inputs,
    attributes: Mapping[str, Any],
    *,
    constants: Sequence[str] = (),
    threads: int | str = 2,
) -> list[np.ndarray[Any, Any]]:
    model = one_node(operator, inputs, attributes, constants=constants)
    session = onnxruntime.InferenceSession(model, session_options(threads))
    feeds = {n: a for n, a in inputs.items() if a is not None and n not in constants}
    results: list[np.ndarray[Any, Any]] = session.run(None, feeds)
    return results


# --- weights -----------------------------------------------------------------------------------


def random_packed(
    generator: np.random.Generator, format_name: str, outputs: int, inputs: int
) -> np.ndarray[Any, Any]:
    """Packed random weights of that format, uint8 [bytes]."""
    form = linear_format(format_name)
    groups = inputs // form.group
    codes = generator.integers(0, form.largest_code + 1, (outputs, inputs)).astype(np.uint8)
    spread = 0.5 / form.largest_code
    scales = (generator.uniform(0.5, 1, (outputs, groups)) * spread).astype(np.float16)
    minima = -generator.uniform(0, 0.5, (outputs, groups)).astype(np.float16)
    rows = QuantizedRows(codes, scales, minima if form.has_min else None)
    return pack(form, rows).reshape(-1)


def dequantized(
    packed: np.ndarray[Any, Any], format_name: str, outputs: int, inputs: int
) -> np.ndarray[Any, Any]:
    form: LinearFormat = linear_format(format_name)
    return unpack(form, packed, outputs, inputs).dequantize(form).astype(np.float64)


# --- what the operators compute, in double but for the activations' rounding to int8 ------------


def rounded_activations(x: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    """x as the linears see it: int8 codes times a float scale per group of 32."""
    grouped = x.astype(np.float32).reshape(x.shape[0], -1, 32)
    largest = np.abs(grouped).max(axis=-1, keepdims=True)
    with np.errstate(divide="ignore"):
        inverse = np.where(largest > 0, np.float32(127) / largest, np.float32(0))
    codes = np.rint(grouped * inverse)
    scales = (largest / np.float32(127)).astype(np.float64)
    return (codes * scales).reshape(x.shape)


def quantized_linear(
    x: np.ndarray[Any, Any], packed: Any, format_name: str, outputs: int
) -> np.ndarray[Any, Any]:
    inputs = x.shape[1]
    return rounded_activations(x) @ dequantized(packed, format_name, outputs, inputs).T


def activate(gate: np.ndarray[Any, Any], activation: str) -> np.ndarray[Any, Any]:
    if activation == "silu":
        return gate / (1 + np.exp(-gate))
    return 0.5 * gate * (1 + np.tanh(np.sqrt(2 / np.pi) * (gate + 0.044715 * gate**3)))


def gated_linear(
    x: np.ndarray[Any, Any], packed: Any, format_name: str, intermediate: int, activation: str
) -> np.ndarray[Any, Any]:
    both = quantized_linear(x, packed, format_name, 2 * intermediate)
    panels = both.reshape(x.shape[0], -1, 2, PANEL)
    return (activate(panels[:, :, 0], activation) * panels[:, :, 1]).reshape(x.shape[0], -1)


def rms_norm(x: np.ndarray[Any, Any], weight: Any, epsilon: float) -> np.ndarray[Any, Any]:
    wide = x.astype(np.float64)
    return wide / np.sqrt((wide**2).mean(-1, keepdims=True) + epsilon) * weight


def rotated(x: np.ndarray[Any, Any], rotary: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    cosines, sines = np.split(rotary[:, None, :].astype(np.float64), 2, axis=-1)
    first, second = np.split(x.astype(np.float64), 2, axis=-1)
    return np.concatenate([first * cosines - second * sines, second * cosines + first * sines], -1)


def keys_to_tiles(keys: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    heads, slots, head_dim = keys.shape
    return np.ascontiguousarray(keys.reshape(heads, slots // 16, 16, head_dim).swapaxes(2, 3))


def keys_from_tiles(tiles: np.ndarray[Any, Any]) -> np.ndarray[Any, Any]:
    heads, count, head_dim, _ = tiles.shape
    return tiles.swapaxes(2, 3).reshape(heads, count * 16, head_dim)


def tree_attention(
    inputs: Mapping[str, np.ndarray[Any, Any]], scale: float, window: int
) -> tuple[np.ndarray[Any, Any], np.ndarray[Any, Any], np.ndarray[Any, Any]]:
    """out [R, heads * D], and the caches (keys [kv, slots, D]) with the rows written."""
    q, k, v = inputs["q"], inputs["k"], inputs["v"]
    keys, values = keys_from_tiles(inputs["past_keys"]).copy(), inputs["past_values"].copy()
    keys[:, inputs["slots"]] = k.swapaxes(0, 1).astype(np.float16)
    values[:, inputs["slots"]] = v.swapaxes(0, 1).astype(np.float16)
    rows, heads, _ = q.shape
    group = heads // k.shape[1]
    out = np.zeros(q.shape, np.float64)
    for row in range(rows):
        begin, end = inputs["path_ranges"][row]
        seen = np.concatenate([inputs["context_slots"], inputs["path_slots"][begin:end]])
        if window:
            seen = seen[-window:]
        for head in range(heads):
            scores = keys[head // group, seen].astype(np.float64) @ q[row, head] * scale
            weights = np.exp(scores - scores.max())
            out[row, head] = weights / weights.sum() @ values[head // group, seen]
    return out.reshape(rows, -1), keys, values


def random_pass(generator: np.random.Generator, rows: int, context: int, slots: int) -> Any:
    """The index inputs of a pass: a random tree of ``rows`` nodes after ``context`` tokens."""
    order = generator.permutation(slots).astype(np.int32)
    own = order[context : context + rows]
    paths: list[list[int]] = []
    for row in range(rows):
        parent = int(generator.integers(-1, row)) if row else -1
        paths.append([*(paths[parent] if parent >= 0 else []), int(own[row])])
    ends = np.cumsum([len(path) for path in paths])
    begins = ends - [len(path) for path in paths]
    return {
        "slots": own,
        "context_slots": order[:context],
        "path_slots": np.array([slot for path in paths for slot in path], np.int32),
        "path_ranges": np.stack([begins, ends], axis=1).astype(np.int32).reshape(rows, 2),
    }


def random_cache(
    generator: np.random.Generator, kv_heads: int, slots: int, head_dim: int
) -> dict[str, np.ndarray[Any, Any]]:
    keys = generator.normal(size=(kv_heads, slots, head_dim)).astype(np.float16)
    values = generator.normal(size=(kv_heads, slots, head_dim)).astype(np.float16)
    return {"past_keys": keys_to_tiles(keys), "past_values": values}


def attention_inputs(
    generator: np.random.Generator, rows: int, context: int
) -> dict[str, np.ndarray[Any, Any]]:
    """All inputs of a TreeAttention of random contents."""
    return {
        "q": generator.normal(size=(rows, HEADS, HEAD_DIM)).astype(np.float32),
        "k": generator.normal(size=(rows, KV_HEADS, HEAD_DIM)).astype(np.float32),
        "v": generator.normal(size=(rows, KV_HEADS, HEAD_DIM)).astype(np.float32),
        **random_pass(generator, rows, context, SLOTS),
        **random_cache(generator, KV_HEADS, SLOTS, HEAD_DIM),
    }
