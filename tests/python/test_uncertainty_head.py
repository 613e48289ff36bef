"""The controller's trained head: the runtime's, torch's and ONNX Runtime's are numpy's."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
onnxruntime = pytest.importorskip("onnxruntime")

from onnx import helper  # noqa: E402

import operator_graphs as graphs  # noqa: E402
from sapwood import _runtime  # noqa: E402
from sapwood.errors import SapwoodError  # noqa: E402
from sapwood_export.operators.library import operators  # noqa: E402
from sapwood_export.operators.tree import uncertainty_head  # noqa: E402

Array = np.ndarray[Any, Any]
PRUNING = {
    "max_tree_width": 6,
    "beta_base": 0.5,
    "rho_min": 0.02,
    "rho_max": 0.6,
    "entropy_low": 0.8,
}


def random_head(seed: int, units: int, hidden: int) -> tuple[Array, Array, Array, float]:
    generator = np.random.default_rng(seed)
    w1 = (generator.normal(size=(units, hidden)) / np.sqrt(hidden)).astype(np.float32)
    b1, w2 = generator.normal(size=(2, units)).astype(np.float32)
    return w1, b1, w2, float(np.float32(generator.normal()))


def numpy_head(hidden: Array, w1: Array, b1: Array, w2: Array, b2: float) -> Array:
    """MATH.md, section 3, in double."""
    units = np.maximum(hidden.astype(np.float64) @ w1.T.astype(np.float64) + b1, 0)
    return 1 / (1 + np.exp(-(units @ w2.astype(np.float64) + b2)))


@pytest.mark.parametrize(("units", "hidden"), [(1, 1), (7, 33), (64, 576), (32, 1537)])
def test_the_runtime_and_torch_give_what_numpy_gives(units: int, hidden: int) -> None:
    w1, b1, w2, b2 = random_head(units, units, hidden)
    states = np.random.default_rng(9).normal(size=(20, hidden)).astype(np.float32)
    expected = numpy_head(states, w1, b1, w2, b2)
    head = _runtime.UncertaintyHead.create(w1, b1, w2, b2)
    assert head.hidden_size == hidden
    np.testing.assert_allclose([head.uncertainty(s) for s in states], expected, atol=2e-6)
    ours = uncertainty_head(*map(torch.from_numpy, (states, w1, b1, w2)), torch.tensor(b2))
    np.testing.assert_allclose(ours.numpy(), expected, atol=2e-6)


def test_a_head_that_does_not_fit_is_refused() -> None:
    w1, b1, w2, b2 = random_head(1, 4, 8)
    with pytest.raises(SapwoodError, match="uncertainty head needs"):
        _runtime.UncertaintyHead.create(w1, b1, w2[:3], b2)
    with pytest.raises(SapwoodError, match="not all finite"):
        _runtime.UncertaintyHead.create(w1, b1, w2, float("inf"))
    with pytest.raises(SapwoodError, match="hidden_size"):
        _runtime.UncertaintyHead.create(w1, b1, w2, b2).uncertainty(np.zeros(7, np.float32))


def test_a_graph_with_the_head_ahead_of_the_pruning_operator_is_the_runtimes_controller() -> None:
    w1, b1, w2, b2 = random_head(3, 16, 48)
    generator = np.random.default_rng(4)
    hidden = generator.normal(size=(30, 48)).astype(np.float32)
    logits = (3 * generator.normal(size=(30, 200))).astype(np.float32)
    weights = {"w1": w1.T.copy(), "b1": b1, "w2": w2, "b2": np.float32(b2)}
    nodes = [
        helper.make_node("MatMul", ["hidden", "w1"], ["first"]),
        helper.make_node("Add", ["first", "b1"], ["biased"]),
        helper.make_node("Relu", ["biased"], ["units"]),
        helper.make_node("MatMul", ["units", "w2"], ["second"]),
        helper.make_node("Add", ["second", "b2"], ["score"]),
        helper.make_node("Sigmoid", ["score"], ["uncertainty"]),
        helper.make_node(
            "DynamicTreePrune",
            ["logits", "entropy_threshold", "uncertainty"],
            ["kept", "weights", "mask"],
            domain=graphs.DOMAIN,
            **PRUNING,
        ),
    ]
    threshold = np.array([2.5], np.float32)
    feeds = {"hidden": hidden, "logits": logits, "entropy_threshold": threshold}
    inputs = [
        graphs.value_info("hidden", np.dtype(np.float32), ["rows", 48]),
        graphs.value_info("logits", np.dtype(np.float32), ["rows", 200]),
        graphs.value_info("entropy_threshold", np.dtype(np.float32), [1]),
    ]
    outputs = [graphs.value_info("kept", np.dtype(np.int32), None)]
    model = graphs.graph_bytes(nodes, inputs, outputs, weights)
    session = onnxruntime.InferenceSession(model, graphs.session_options())
    (kept,) = session.run(None, feeds)

    head = _runtime.UncertaintyHead.create(w1, b1, w2, b2)
    said = np.array([head.uncertainty(row) for row in hidden], np.float32)
    expected = operators().dynamic_tree_prune(
        torch.from_numpy(logits),
        torch.from_numpy(threshold),
        torch.from_numpy(said),
        *PRUNING.values(),
    )
    np.testing.assert_array_equal(kept, expected[0].numpy())
    by_entropy = operators().dynamic_tree_prune(
        torch.from_numpy(logits), torch.from_numpy(threshold), None, *PRUNING.values()
    )
    assert (kept != by_entropy[0].numpy()).any()


def test_an_uncertainty_that_is_none_is_refused_by_the_operator() -> None:
    inputs = {
        "logits": np.zeros((2, 5), np.float32),
        "entropy_threshold": np.array([2.5], np.float32),
        "uncertainty": np.array([0.5, 1.5], np.float32),
    }
    with pytest.raises(Exception, match=r"row 1 of the uncertainty is 1\.5"):
        graphs.run_operator("DynamicTreePrune", inputs, PRUNING)
    with pytest.raises(Exception, match="uncertainty"):
        graphs.run_operator(
            "DynamicTreePrune", inputs | {"uncertainty": np.zeros(3, np.float32)}, PRUNING
        )
