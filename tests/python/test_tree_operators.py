"""DynamicTreePrune and BlockSparseVerify: ONNX Runtime, torch, and MATH.md spelled in numpy."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
onnxruntime = pytest.importorskip("onnxruntime")

from onnx import helper  # noqa: E402

import operator_graphs as graphs  # noqa: E402
from sapwood import _runtime  # noqa: E402
from sapwood_export.operators.library import operators  # noqa: E402
from sapwood_export.operators.tree import counter_uniform, race  # noqa: E402

Array = np.ndarray[Any, Any]
PRUNING = {
    "max_tree_width": 5,
    "beta_base": 0.3,
    "rho_min": 0.02,
    "rho_max": 0.6,
    "entropy_low": 0.8,
}


def prune(logits: Array, threshold: float, attributes: dict[str, Any] | None = None) -> list[Array]:
    inputs = {"logits": logits, "entropy_threshold": np.array([threshold], np.float32)}
    return graphs.run_operator("DynamicTreePrune", inputs, attributes or PRUNING)


def numpy_prune(row: Array, threshold: float) -> tuple[list[int], float]:
    """MATH.md, section 3, for one row: the kept tokens and 1 / Z."""
    q = np.exp(row.astype(np.float64) - row.max())
    q /= q.sum()
    entropy = -(q[q > 0] * np.log(q[q > 0])).sum()
    a = np.clip((entropy - 0.8) / (threshold - 0.8), 0, 1)
    ratio = np.clip(0.3 * (1 - a), 0.02, 0.6)
    kept, mass = [], 0.0
    for token in np.argsort(-row, kind="stable")[:5]:
        if kept and mass >= 1 - ratio:
            break
        if q[token] == 0:
            break
        kept.append(int(token))
        mass += q[token]
    return kept, 1 / mass


def random_logits(generator: np.random.Generator, rows: int, vocabulary: int) -> Array:
    scale = generator.uniform(0.5, 4, size=(rows, 1))
    return (generator.normal(size=(rows, vocabulary)) * scale).astype(np.float32)


@pytest.mark.parametrize("vocabulary", [3, 7, 500, 4099])
def test_pruning_is_the_same_in_onnxruntime_torch_and_numpy(vocabulary: int) -> None:
    logits = random_logits(np.random.default_rng(vocabulary), 40, vocabulary)
    logits[3, 1:] = -np.inf  # one token has everything
    kept, weights, mask = prune(logits, 2.5)
    ours = operators().dynamic_tree_prune(
        torch.from_numpy(logits), torch.tensor([2.5]), None, *PRUNING.values()
    )
    np.testing.assert_array_equal(kept, ours[0].numpy())
    np.testing.assert_allclose(weights, ours[1].numpy(), rtol=3e-5)
    np.testing.assert_array_equal(mask, ours[2].numpy())
    for row in range(len(logits)):
        tokens, weight = numpy_prune(logits[row], 2.5)
        count = len(tokens)
        assert kept[row].tolist() == tokens + [-1] * (5 - count)
        assert mask[row].tolist() == [1] * count + [0] * (5 - count)
        np.testing.assert_allclose(weights[row, :count], weight, rtol=3e-5)
        assert not weights[row, count:].any()


def test_a_higher_threshold_prunes_more() -> None:
    logits = random_logits(np.random.default_rng(1), 200, 50)
    counts = [prune(logits, threshold)[2].sum() for threshold in (1.0, 2.0, 4.0)]
    assert counts[0] > counts[1] > counts[2]


def test_shapes_of_both_operators_carry_symbols() -> None:
    nodes = [
        helper.make_node(
            "DynamicTreePrune",
            ["logits", "entropy_threshold"],
            ["kept", "weights", "mask"],
            domain=graphs.DOMAIN,
            **PRUNING,
        ),
        helper.make_node(
            "BlockSparseVerify",
            ["target", "logits", "mask", "weights"],
            ["length", "indices", "next"],
            domain=graphs.DOMAIN,
            verifier="target_draw",
            temperature=0.0,
        ),
    ]
    rows = ["rows", 64]
    inputs = [
        graphs.value_info("logits", np.dtype(np.float32), rows),
        graphs.value_info("target", np.dtype(np.float32), rows),
        graphs.value_info("entropy_threshold", np.dtype(np.float32), [1]),
    ]
    outputs = [
        graphs.value_info(name, np.dtype(dtype), None)
        for name, dtype in [
            ("kept", np.int32),
            ("mask", np.uint8),
            ("length", np.int32),
            ("indices", np.int32),
        ]
    ]
    model = graphs.graph_bytes(nodes, inputs, outputs, {})
    session = onnxruntime.InferenceSession(model, graphs.session_options())
    shapes = {output.name: output.shape for output in session.get_outputs()}
    assert shapes["kept"] == ["rows", 5]
    assert shapes["mask"] == ["rows", 5]
    assert shapes["length"] == [1]
    assert len(shapes["indices"]) == 1


# --- verification ---------------------------------------------------------------------------------


def random_tree(generator: np.random.Generator, vocabulary: int, sampled: bool) -> dict[str, Array]:
    """Inputs of a verify: a tree in breadth-first order under a random draft and target."""
    width, nodes = 4, int(generator.integers(0, 9))
    mask = np.zeros((nodes + 1, width), np.uint8)
    made = 0
    for row in range(nodes + 1):
        # A row must exist before the next one can hang below it.
        most = min(width, nodes - made)
        least = 1 if made == row and made < nodes else 0
        count = int(generator.integers(least, most + 1)) if most else 0
        chosen = generator.permutation(width)[:count] if sampled else np.arange(count)
        mask[row, chosen] = np.arange(1, count + 1) if sampled else 1
        made += count
    mask = mask[: made + 1]
    draft = random_logits(generator, made + 1, vocabulary)
    target = (draft + generator.normal(size=draft.shape)).astype(np.float32)
    q = np.exp(draft.astype(np.float64))
    q /= q.sum(-1, keepdims=True)
    mass = np.sort(q, axis=-1)[:, -width:].sum(-1, keepdims=True)
    return {
        "target_logits": target,
        "draft_logits": draft,
        "tree_mask": mask,
        "importance_weights": np.repeat(1 / mass, width, axis=1).astype(np.float32),
    }


def trees(sampled: bool, count: int) -> Iterator[dict[str, Array]]:
    generator = np.random.default_rng(3 + sampled)
    for seed in range(count):
        inputs = random_tree(generator, 12, sampled)
        yield {**inputs, "draw": np.array([seed * 7919, seed], np.int32)}


def in_torch(inputs: dict[str, Array], verifier: str, temperature: float) -> list[Array]:
    tensors = [torch.from_numpy(array) for array in inputs.values()]
    results = operators().block_sparse_verify(*tensors, verifier, temperature)
    return [tensor.numpy() for tensor in results]


def numpy_target_draw(inputs: dict[str, Array], temperature: float) -> tuple[list[int], int]:
    """MATH.md, section 4, first rule."""
    mask, draft = inputs["tree_mask"], inputs["draft_logits"]
    children: list[dict[int, int]] = []
    made = 0
    for row in range(len(mask)):
        ranks = [k for k in range(mask.shape[1]) if mask[row, k]]
        order = np.argsort(-draft[row], kind="stable")
        children.append({int(order[k]): made + i for i, k in enumerate(ranks)})
        made += len(ranks)
    seed, index = (int(value) for value in inputs["draw"])
    path: list[int] = []
    row = 0
    while True:
        logits = inputs["target_logits"][row].astype(np.float64)
        if temperature == 0:
            token = int(logits.argmax())
        else:
            p = np.exp((logits - logits.max()) / temperature)
            token = race(torch.from_numpy(p / p.sum()), seed, index + len(path))
        if token not in children[row]:
            return path, token
        path.append(children[row][token])
        row = path[-1] + 1


@pytest.mark.parametrize("temperature", [0.0, 0.7])
def test_ranked_trees_verify_alike_everywhere(temperature: float) -> None:
    lengths = set()
    for inputs in trees(False, 60):
        attributes = {"verifier": "target_draw", "temperature": temperature}
        length, indices, token = graphs.run_operator("BlockSparseVerify", inputs, attributes)
        path, following = numpy_target_draw(inputs, temperature)
        assert length[0] == len(path)
        assert indices.tolist() == path + [-1] * (len(indices) - len(path))
        assert token[0] == following
        for ours, theirs in zip(
            in_torch(inputs, "target_draw", temperature), (length, indices, token), strict=True
        ):
            np.testing.assert_array_equal(ours, theirs)
        lengths.add(len(path))
    assert len(lengths) > 2  # nothing accepted, something, more


@pytest.mark.parametrize("verifier", ["rejection", "traversal"])
def test_sampled_trees_verify_alike_in_onnxruntime_and_torch(verifier: str) -> None:
    lengths = set()
    for inputs in trees(True, 60):
        attributes = {"verifier": verifier, "temperature": 0.9}
        compiled = graphs.run_operator("BlockSparseVerify", inputs, attributes)
        for ours, theirs in zip(in_torch(inputs, verifier, 0.9), compiled, strict=True):
            np.testing.assert_array_equal(ours, theirs)
        lengths.add(int(compiled[0][0]))
    assert len(lengths) > 2


def test_the_uniforms_of_torch_are_those_of_the_runtime() -> None:
    for seed, index in [(0, 0), (7, 123456789012), (2**40 + 3, 5)]:
        assert counter_uniform(seed, index, 0) == _runtime.counter_uniform(seed, index)


def refused(inputs: dict[str, Array], attributes: dict[str, Any], *parts: str) -> None:
    with pytest.raises(Exception, match=r"com\.endpoint\.ai") as caught:
        graphs.run_operator("BlockSparseVerify", inputs, attributes)
    for part in parts:
        assert part in str(caught.value), str(caught.value)


def test_what_does_not_fit_is_refused_in_words() -> None:
    inputs = next(i for i in trees(True, 20) if i["tree_mask"].sum() > 3)
    fine = {"verifier": "rejection", "temperature": 1.0}
    graphs.run_operator("BlockSparseVerify", inputs, fine)
    refused(inputs, {"verifier": "typical", "temperature": 1.0}, "typical", "target_draw")
    refused(inputs, {"verifier": "rejection", "temperature": 0.0}, "temperature above 0")
    doubled = {**inputs, "importance_weights": inputs["importance_weights"] * 2}
    refused(doubled, fine, "importance weights")
    empty = {**inputs, "tree_mask": np.zeros_like(inputs["tree_mask"])}
    refused(empty, fine, "no earlier row")
    short = {**inputs, "draft_logits": inputs["draft_logits"][:-1]}
    refused(short, fine, "draft_logits", "shape")
    with pytest.raises(Exception, match="entropy_threshold"):
        prune(inputs["target_logits"], 0.5)
    with pytest.raises(Exception, match="not finite"):
        prune(np.full((1, 4), np.nan, np.float32), 2.5)
