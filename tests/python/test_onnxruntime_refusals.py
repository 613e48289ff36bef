"""What our ONNX Runtime operators say when something is wrong: one line that names it."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

onnx = pytest.importorskip("onnx", reason="the package onnx is not installed")
onnxruntime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")

import decoder_layer_graphs as layers  # noqa: E402
import operator_graphs as graphs  # noqa: E402
from operator_graphs import HEAD_DIM, KV_HEADS, SLOTS, attention_inputs  # noqa: E402


@pytest.fixture
def generator() -> np.random.Generator:
    return np.random.default_rng(21)


def error_of(operator: str, inputs: Any, attributes: Any, **options: Any) -> str:
    """The message with which creating or running that node fails: one line."""
    with pytest.raises(Exception, match=r"com\.endpoint\.ai|tensor\(double\)") as caught:
        graphs.run_operator(operator, inputs, attributes, **options)
    message = str(caught.value)
    assert "\n" not in message.strip()
    return message


LINEAR = {"format": "int4_g32", "outputs": 16, "inputs": 64}


def linear_inputs(generator: np.random.Generator) -> dict[str, np.ndarray[Any, Any]]:
    weight = graphs.random_packed(generator, "int4_g32", 16, 64)
    return {"x": np.zeros((2, 64), np.float32), "weight": weight}


@pytest.mark.parametrize("missing", sorted(LINEAR))
def test_a_missing_attribute_is_named(generator: Any, missing: str) -> None:
    attributes = {name: value for name, value in LINEAR.items() if name != missing}
    message = error_of(
        "QuantizedLinear", linear_inputs(generator), attributes, constants=["weight"]
    )
    assert f"attribute '{missing}'" in message
    assert "node 'the_node'" in message


@pytest.mark.parametrize(
    ("attribute", "value", "words"),
    [
        ("format", "int3", "is 'int3'"),
        ("outputs", 0, "is 0, but must be at least 1"),
        ("outputs", 1 << 40, "below 2^31"),
        ("inputs", 48, "no multiple of 32"),
        ("outputs", 17, "has 1280 bytes, not 1152"),
        ("inputs", 1.5, "attribute 'inputs' (int) is missing"),
    ],
)
def test_a_wrong_attribute_is_named(generator: Any, attribute: str, value: Any, words: str) -> None:
    inputs = linear_inputs(generator)
    if words.startswith("has"):
        words = f"has {inputs['weight'].size} bytes, not {2 * inputs['weight'].size}"
    message = error_of(
        "QuantizedLinear", inputs, {**LINEAR, attribute: value}, constants=["weight"]
    )
    assert words in message


def test_an_unknown_activation_is_named(generator: Any) -> None:
    inputs = {
        "x": np.zeros((1, 64), np.float32),
        "gate_up": graphs.random_packed(generator, "int4_g32", 32, 64),
    }
    attributes = {"format": "int4_g32", "intermediate": 16, "inputs": 64, "activation": "relu"}
    message = error_of("GatedLinear", inputs, attributes, constants=["gate_up"])
    assert "'relu', not 'silu' or 'gelu_tanh'" in message


def test_weights_that_are_fed_are_refused(generator: Any) -> None:
    message = error_of("QuantizedLinear", linear_inputs(generator), LINEAR)
    assert "input 'weight' must be an initialiser" in message


def test_a_wrong_width_is_refused_when_it_is_run(generator: Any) -> None:
    inputs = {**linear_inputs(generator), "x": np.zeros((2, 32), np.float32)}
    message = error_of("QuantizedLinear", inputs, LINEAR, constants=["weight"])
    assert "input 'x' has shape [2, 32], not [?, 64]" in message


def test_a_width_that_the_graph_itself_gets_wrong_is_refused(generator: Any) -> None:
    # Shape inference finds it first, but its error does not stop a session: the kernel does.
    inputs = {**linear_inputs(generator), "x": np.zeros((2, 32), np.float32)}
    model = graphs.one_node(
        "QuantizedLinear", inputs, LINEAR, constants=["weight"], shapes={"x": ["rows", 32]}
    )
    with pytest.raises(Exception, match=r"input 'x' has shape \[[2?], 32\], not \[\?, 64\]"):
        onnxruntime.InferenceSession(model, graphs.session_options()).run(None, {"x": inputs["x"]})


def test_a_norm_of_the_wrong_length_is_named(generator: Any) -> None:
    layer = layers.random_layer(generator, "qwen3")
    layer.weights["k_norm"] = np.ones(8, np.float32)
    with pytest.raises(Exception, match=r"input 'k_norm' has shape \[8\], not \[16\]"):
        layers.session(layers.fused_graph(layer))


def test_a_wrong_element_type_is_refused(generator: Any) -> None:
    inputs = {**linear_inputs(generator), "x": np.zeros((2, 64), np.float64)}
    message = error_of("QuantizedLinear", inputs, LINEAR, constants=["weight"])
    assert "tensor(double)" in message


def test_a_token_outside_the_vocabulary_is_refused(generator: Any) -> None:
    table = graphs.random_packed(generator, "int8_g32", 40, 64)
    attributes = {"format": "int8_g32", "hidden": 64, "vocabulary": 40, "scale": 1.0}
    for token in (40, -1):
        inputs = {"token_ids": np.array([token], np.int32), "table": table}
        message = error_of("TokenEmbedding", inputs, attributes, constants=["table"])
        assert f"holds {token}, but the vocabulary has 40 tokens" in message


@pytest.mark.parametrize(
    ("name", "index", "value", "words"),
    [
        ("slots", 0, SLOTS, "input 'slots' holds 96"),
        ("context_slots", 3, -2, "input 'context_slots' holds -2"),
        ("path_slots", 0, 1 << 30, "input 'path_slots' holds"),
        ("path_ranges", (0, 0), -1, "row 0 the path -1 to"),
        ("path_ranges", (1, 1), 99, "row 1 the path"),
        ("path_ranges", (1, 1), 0, "row 1 the path"),
    ],
)
def test_an_index_outside_the_cache_is_refused(
    generator: Any, name: str, index: Any, value: int, words: str
) -> None:
    inputs = attention_inputs(generator, 3, 8)
    inputs[name] = inputs[name].copy()
    inputs[name][index] = value
    message = error_of("TreeAttention", inputs, {"scale": 1.0, "window": 0})
    assert words in message


def test_a_path_that_does_not_end_at_its_row_is_refused(generator: Any) -> None:
    inputs = attention_inputs(generator, 2, 8)
    inputs["slots"] = inputs["slots"][::-1].copy()
    message = error_of("TreeAttention", inputs, {"scale": 1.0, "window": 0})
    assert "does not end at its own slot" in message


@pytest.mark.parametrize(
    ("name", "shape", "words"),
    [
        ("past_values", (KV_HEADS, SLOTS + 16, HEAD_DIM), "'past_values' has shape"),
        ("past_keys", (KV_HEADS, SLOTS // 16, HEAD_DIM, 8), "'past_keys' has shape"),
        ("k", (3, KV_HEADS, 16), "'k' has shape"),
        ("k", (3, 3, HEAD_DIM), "'v' has shape"),
    ],
)
def test_a_wrong_cache_or_head_shape_is_refused(
    generator: Any, name: str, shape: tuple[int, ...], words: str
) -> None:
    inputs = attention_inputs(generator, 3, 8)
    inputs[name] = np.zeros(shape, inputs[name].dtype)
    assert words in error_of("TreeAttention", inputs, {"scale": 1.0, "window": 0})


def test_heads_that_make_no_whole_groups_are_refused(generator: Any) -> None:
    inputs = attention_inputs(generator, 3, 8)
    inputs["q"] = np.zeros((3, 3, HEAD_DIM), np.float32)
    message = error_of("TreeAttention", inputs, {"scale": 1.0, "window": 0})
    assert "3 heads over 2 key-value heads make no whole groups" in message


def test_an_output_row_that_is_not_there_is_refused(generator: Any) -> None:
    inputs = {
        "hidden": np.zeros((2, 64), np.float32),
        "output_rows": np.array([2], np.int32),
        "norm": np.ones(64, np.float32),
        "head": graphs.random_packed(generator, "int8_g32", 50, 64),
    }
    attributes = {"format": "int8_g32", "norm_epsilon": 1e-5, "vocabulary": 50}
    message = error_of("OutputHead", inputs, attributes, constants=["norm", "head"])
    assert "asks for row 2 of 2" in message


@pytest.mark.parametrize("threads", ["0", "two", "1000", ""])
def test_a_wrong_number_of_threads_is_refused(threads: str) -> None:
    inputs = {"x": np.zeros((1, 32), np.float32), "weight": np.ones(32, np.float32)}
    message = error_of("RmsNorm", inputs, {"epsilon": 1e-5}, threads=threads)
    assert f"'sapwood.threads' is '{threads}', not a number of threads from 1 to 256" in message
