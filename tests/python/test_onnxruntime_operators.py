"""Our ONNX Runtime operators, each alone, through the plug-in that any session can register."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

onnx = pytest.importorskip("onnx", reason="the package onnx is not installed")
onnxruntime = pytest.importorskip("onnxruntime", reason="onnxruntime is not installed")

import decoder_layer_graphs as layers  # noqa: E402
import operator_graphs as graphs  # noqa: E402

FORMATS = ["int4_g32", "int4_g32_min", "int4_g128", "int4_g128_min", "int8_g32"]


def close(actual: np.ndarray[Any, Any], expected: np.ndarray[Any, Any], tolerance: float) -> None:
    assert actual.shape == expected.shape
    scale = max(1.0, float(np.abs(expected).max(initial=0)))
    np.testing.assert_allclose(actual, expected, rtol=0, atol=tolerance * scale)


@pytest.fixture
def generator() -> np.random.Generator:
    return np.random.default_rng(20)


# --- each operator against numpy ----------------------------------------------------------------


@pytest.mark.parametrize("form", FORMATS)
def test_token_embedding_gives_scaled_rows_of_the_table(generator: Any, form: str) -> None:
    table = graphs.random_packed(generator, form, 40, 128)
    ids = np.array([0, 39, 7, 7, 16], np.int32)
    attributes = {"format": form, "hidden": 128, "vocabulary": 40, "scale": 2.5}
    inputs = {"token_ids": ids, "table": table}
    (hidden,) = graphs.run_operator("TokenEmbedding", inputs, attributes, constants=["table"])
    close(hidden, graphs.dequantized(table, form, 40, 128)[ids] * 2.5, 1e-6)


def test_rotary_table_is_exact_at_far_positions() -> None:
    frequencies = (10000.0 ** -(np.arange(16) / 16)).astype(np.float32)
    positions = np.array([0, 1, 2047, 131071], np.int32)
    inputs = {"positions": positions, "inverse_frequencies": frequencies}
    (rotary,) = graphs.run_operator("RotaryTable", inputs, {})
    angles = positions[:, None].astype(np.float64) * frequencies.astype(np.float64)
    expected = np.concatenate([np.cos(angles), np.sin(angles)], axis=1)
    close(rotary, expected, 1e-7)


@pytest.mark.parametrize("shape", [(5, 64), (3, 4, 32), (1, 96)])
def test_rms_norm_norms_over_the_last_axis(generator: Any, shape: tuple[int, ...]) -> None:
    x = generator.normal(size=shape).astype(np.float32)
    weight = generator.normal(size=shape[-1]).astype(np.float32)
    (y,) = graphs.run_operator("RmsNorm", {"x": x, "weight": weight}, {"epsilon": 1e-5})
    close(y, graphs.rms_norm(x, weight, 1e-5), 1e-6)


def test_rotary_embedding_rotates_halves(generator: Any) -> None:
    x = generator.normal(size=(6, 3, 32)).astype(np.float32)
    rotary = generator.normal(size=(6, 32)).astype(np.float32)
    (y,) = graphs.run_operator("RotaryEmbedding", {"x": x, "rotary": rotary}, {})
    close(y, graphs.rotated(x, rotary), 1e-6)


@pytest.mark.parametrize("rows", [1, 2, 7, 33])
@pytest.mark.parametrize("form", FORMATS)
def test_quantized_linear_is_the_matrix_product(generator: Any, form: str, rows: int) -> None:
    x = generator.normal(size=(rows, 256)).astype(np.float32)
    weight = graphs.random_packed(generator, form, 40, 256)  # 40: the last panel is half full
    attributes = {"format": form, "outputs": 40, "inputs": 256}
    inputs = {"x": x, "weight": weight}
    (y,) = graphs.run_operator("QuantizedLinear", inputs, attributes, constants=["weight"])
    close(y, graphs.quantized_linear(x, weight, form, 40), 1e-5)


@pytest.mark.parametrize("activation", ["silu", "gelu_tanh"])
@pytest.mark.parametrize("rows", [1, 5])
def test_gated_linear_multiplies_activated_gates(
    generator: Any, activation: str, rows: int
) -> None:
    x = generator.normal(size=(rows, 64)).astype(np.float32)
    gate_up = graphs.random_packed(generator, "int4_g32_min", 96, 64)
    attributes = {
        "format": "int4_g32_min",
        "intermediate": 48,
        "inputs": 64,
        "activation": activation,
    }
    inputs = {"x": x, "gate_up": gate_up}
    (y,) = graphs.run_operator("GatedLinear", inputs, attributes, constants=["gate_up"])
    close(y, graphs.gated_linear(x, gate_up, "int4_g32_min", 48, activation), 1e-5)


@pytest.mark.parametrize("window", [0, 5])
@pytest.mark.parametrize(("rows", "context"), [(1, 0), (1, 40), (9, 17), (24, 60)])
def test_tree_attention_sees_the_context_and_its_own_path(
    generator: Any, rows: int, context: int, window: int
) -> None:
    inputs = graphs.attention_inputs(generator, rows, context)
    attributes = {"scale": 0.17, "window": window}
    out, keys, values = graphs.run_operator("TreeAttention", inputs, attributes)
    expected, expected_keys, expected_values = graphs.tree_attention(inputs, 0.17, window)
    close(out, expected, 1e-5)
    np.testing.assert_array_equal(graphs.keys_from_tiles(keys), expected_keys)
    np.testing.assert_array_equal(values, expected_values)


def test_output_head_gives_logits_of_the_rows_asked_for(generator: Any) -> None:
    hidden = generator.normal(size=(6, 64)).astype(np.float32)
    norm = generator.normal(size=64).astype(np.float32)
    head = graphs.random_packed(generator, "int8_g32", 50, 64)
    rows = np.array([5, 0, 5], np.int32)
    inputs = {"hidden": hidden, "output_rows": rows, "norm": norm, "head": head}
    attributes = {"format": "int8_g32", "norm_epsilon": 1e-5, "vocabulary": 50}
    (logits,) = graphs.run_operator("OutputHead", inputs, attributes, constants=["norm", "head"])
    normed = graphs.rms_norm(hidden, norm, 1e-5)[rows].astype(np.float32)
    close(logits, graphs.quantized_linear(normed, head, "int8_g32", 50), 1e-3)
    np.testing.assert_array_equal(logits[0], logits[2])


def test_a_pass_that_asks_for_no_logits_gets_none(generator: Any) -> None:
    inputs = {
        "hidden": np.zeros((3, 64), np.float32),
        "output_rows": np.zeros(0, np.int32),
        "norm": np.ones(64, np.float32),
        "head": graphs.random_packed(generator, "int8_g32", 50, 64),
    }
    attributes = {"format": "int8_g32", "norm_epsilon": 1e-5, "vocabulary": 50}
    (logits,) = graphs.run_operator("OutputHead", inputs, attributes, constants=["norm", "head"])
    assert logits.shape == (0, 50)


# --- the fused layer ----------------------------------------------------------------------------


@pytest.mark.parametrize("family", ["llama", "qwen2", "qwen3", "gemma3"])
@pytest.mark.parametrize("rows", [1, 2, 3, 8, 17, 40])
def test_a_decoder_layer_is_the_sequence_of_single_operators(
    generator: Any, family: str, rows: int
) -> None:
    layer = layers.random_layer(generator, family)
    feeds = layers.random_feeds(generator, layer, rows, context=25)
    fused = layers.session(layers.fused_graph(layer)).run(None, feeds)
    single = layers.session(layers.unfused_graph(layer)).run(None, feeds)
    # The fused layer adds a linear's groups onto the residual, the sequence adds their sum.
    close(fused[0], single[0], 2e-3 if family == "gemma3" else 1e-3)
    np.testing.assert_array_equal(fused[1], single[1])
    np.testing.assert_array_equal(fused[2], single[2])


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_a_row_of_a_decoder_layer_does_not_depend_on_its_neighbours(
    generator: Any, threads: int
) -> None:
    layer = layers.random_layer(generator, "llama")
    session = layers.session(layers.fused_graph(layer), threads)
    feeds = layers.random_feeds(generator, layer, 12, context=25)
    together, keys, values = session.run(None, feeds)
    for row in range(12):
        begin, end = feeds["path_ranges"][row]
        alone = {
            **feeds,
            "hidden": feeds["hidden"][row : row + 1],
            "rotary": feeds["rotary"][row : row + 1],
            "slots": feeds["slots"][row : row + 1],
            "path_slots": feeds["path_slots"][begin:end],
            "path_ranges": np.array([[0, end - begin]], np.int32),
            "past_keys": keys,
            "past_values": values,
        }
        result = session.run(None, alone)
        assert result[0].tobytes() == together[row : row + 1].tobytes()


@pytest.mark.parametrize("in_place_first", [True, False])
def test_a_cache_written_in_place_has_the_bits_of_a_copied_one(
    generator: Any, in_place_first: bool
) -> None:
    layer = layers.random_layer(generator, "llama")
    feeds = layers.random_feeds(generator, layer, 7, context=25)
    session = layers.session(layers.fused_graph(layer))
    copied = None if in_place_first else session.run(None, feeds)
    binding = session.io_binding()
    caches = {}
    for name, array in feeds.items():
        if name in ("past_keys", "past_values"):
            value = onnxruntime.OrtValue.ortvalue_from_shape_and_type(array.shape, np.float16)
            value.update_inplace(array)
            caches[name] = value
            binding.bind_ortvalue_input(name, value)
            binding.bind_ortvalue_output(name.replace("past", "present"), value)
        else:
            binding.bind_cpu_input(name, array)
    binding.bind_output("hidden_out")
    session.run_with_iobinding(binding)
    hidden = binding.copy_outputs_to_cpu()[2]  # bound after the two caches
    copied = copied or session.run(None, feeds)
    assert hidden.tobytes() == copied[0].tobytes()
    assert caches["past_keys"].numpy().tobytes() == copied[1].tobytes()
    assert caches["past_values"].numpy().tobytes() == copied[2].tobytes()


def test_a_past_that_is_not_bound_in_place_stays_as_it_was(generator: Any) -> None:
    inputs = graphs.attention_inputs(generator, 4, 10)
    before = {name: inputs[name].copy() for name in ("past_keys", "past_values")}
    graphs.run_operator("TreeAttention", inputs, {"scale": 1.0, "window": 0})
    for name, array in before.items():
        np.testing.assert_array_equal(inputs[name], array)


def test_optional_inputs_may_be_left_off_the_end(generator: Any) -> None:
    layer = layers.random_layer(generator, "llama")
    feeds = layers.random_feeds(generator, layer, 3, 4)
    model = onnx.load_from_string(layers.fused_graph(layer))
    expected = layers.session(model.SerializeToString()).run(None, feeds)
    while model.graph.node[0].input[-1] == "":
        del model.graph.node[0].input[-1]
    shorter = layers.session(model.SerializeToString()).run(None, feeds)
    assert [array.tobytes() for array in shorter] == [array.tobytes() for array in expected]


# --- shape inference ----------------------------------------------------------------------------


def test_symbolic_dimensions_reach_the_outputs(generator: Any) -> None:
    layer = layers.random_layer(generator, "llama")
    session = layers.session(layers.fused_graph(layer))
    shapes = {output.name: output.shape for output in session.get_outputs()}
    assert shapes["hidden_out"] == ["rows", layer.hidden]
    assert shapes["present_keys"] == [layer.kv_heads, "tiles", layer.head_dim, 16]
    assert shapes["present_values"] == [layer.kv_heads, "slots", layer.head_dim]


def test_symbols_pass_through_a_chain_of_operators(generator: Any) -> None:
    session = layers.session(layers.mlp_graph(layers.random_layer(generator, "llama")))
    assert session.get_outputs()[0].shape == ["rows", 64]


def test_a_size_that_nobody_knows_is_not_made_up(generator: Any) -> None:
    x = np.zeros((3, 64), np.float32)
    model = graphs.one_node(
        "RmsNorm",
        {"x": x, "weight": np.ones(64, np.float32)},
        {"epsilon": 1e-5},
        shapes={"x": [None, 64]},
    )
    session = onnxruntime.InferenceSession(model, graphs.session_options())
    rows, columns = session.get_outputs()[0].shape
    assert not isinstance(rows, int)
    assert columns == 64


def test_known_sizes_become_known_output_sizes(generator: Any) -> None:
    table = graphs.random_packed(generator, "int8_g32", 40, 64)
    inputs = {"token_ids": np.zeros(3, np.int32), "table": table}
    attributes = {"format": "int8_g32", "hidden": 64, "vocabulary": 40, "scale": 1.0}
    model = graphs.one_node(
        "TokenEmbedding", inputs, attributes, constants=["table"], shapes={"token_ids": [3]}
    )
    session = onnxruntime.InferenceSession(model, graphs.session_options())
    assert session.get_outputs()[0].shape == [3, 64]


# --- sessions side by side ----------------------------------------------------------------------


def test_sessions_in_one_process_give_the_same_bits_at_the_same_time(generator: Any) -> None:
    layer = layers.random_layer(generator, "llama")
    model = layers.fused_graph(layer)
    sessions = [layers.session(model, threads) for threads in (1, 2, 2, 3)]
    feeds = [layers.random_feeds(generator, layer, rows, 20) for rows in (1, 5, 16)]
    expected = [sessions[0].run(None, feed) for feed in feeds]
    wrong: list[str] = []

    def work(session: Any) -> None:
        for _ in range(5):
            for feed, results in zip(feeds, expected, strict=True):
                for actual, result in zip(session.run(None, feed), results, strict=True):
                    if actual.tobytes() != result.tobytes():
                        wrong.append("bits differ")

    workers = [threading.Thread(target=work, args=(session,)) for session in sessions]
    for worker in workers:
        worker.start()
    for worker in workers:
        worker.join()
    assert not wrong


def test_a_session_outlives_the_options_it_was_made_from(generator: Any) -> None:
    layer = layers.random_layer(generator, "llama")
    feeds = layers.random_feeds(generator, layer, 2, 4)
    for _ in range(3):  # the plug-in is loaded and unloaded, or not, as ONNX Runtime likes
        session = layers.session(layers.fused_graph(layer))
        assert np.isfinite(session.run(None, feeds)[0]).all()
        del session
