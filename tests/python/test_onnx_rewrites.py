"""Each rewrite alone: what it replaces, and that the graph computes the same as before."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("torch")
pytest.importorskip("transformers")
onnxruntime = pytest.importorskip("onnxruntime")

from graph_tools import (  # noqa: E402
    SLOTS,
    read_and_branch,
    rewrite_named,
    rewritten,
    tiny_bundle,
    workpiece,
)
from operator_graphs import operators_library  # noqa: E402
from sapwood.errors import SapwoodError  # noqa: E402
from sapwood_export.bundle import read_spec  # noqa: E402
from sapwood_export.models.session import Logits  # noqa: E402
from sapwood_export.onnx.compare import OnnxSession  # noqa: E402
from sapwood_export.onnx.rewrites import REWRITES  # noqa: E402
from sapwood_export.onnx.rewrites.workpiece import DOMAIN, Rewrite, Workpiece  # noqa: E402
from sapwood_export.onnx.surgery import leftovers, operate  # noqa: E402

FAMILIES = ("llama3", "qwen2", "gemma3")

# The operator that each rewrite puts in, the rewrites it builds on, and how much it may move the
# logits, as a share of their spread. Zero: not one bit.
REWRITE_FACTS: dict[str, tuple[str, list[str], float]] = {
    "rms-norm": ("RmsNorm", [], 1e-5),
    "rotary-table": ("RotaryTable", [], 1e-5),
    "rotary-embedding": ("RotaryEmbedding", [], 1e-5),
    "quantized-linear": ("QuantizedLinear", [], 0.03),  # activations become int8
    "gated-mlp": ("GatedLinear", ["quantized-linear"], 0.01),  # an int8 code here and there
    "tree-attention": ("TreeAttention", [], 0.005),  # the cache becomes float16
    "kv-layout": ("TreeAttention", ["tree-attention"], 0.0),
    "token-embedding": ("TokenEmbedding", [], 1e-5),
    "output-head": ("OutputHead", ["rms-norm", "quantized-linear"], 0.0),
    "decoder-layer": ("DecoderLayer", [rewrite.name for rewrite in REWRITES[:-1]], 0.0),
}


def logits_after(bundle: Path, rewrites: list[Rewrite]) -> tuple[Logits, Workpiece]:
    path, work = rewritten(bundle, rewrites)
    session = OnnxSession(path, SLOTS, operators_library())
    return read_and_branch(session, work.spec.vocabulary_size), work


def operator_counts(work: Workpiece) -> Counter[str]:
    return Counter(node.op_type for node in work.graph if node.domain == DOMAIN)


def test_every_rewrite_is_tested() -> None:
    assert list(REWRITE_FACTS) == [rewrite.name for rewrite in REWRITES]


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("name", REWRITE_FACTS)
def test_a_rewrite_changes_the_graph_and_not_what_it_computes(name: str, family: str) -> None:
    operator, needed, tolerance = REWRITE_FACTS[name]
    bundle, rewrite = tiny_bundle(family), rewrite_named(name)
    before = [rewrite_named(other) for other in needed]
    expected, _ = logits_after(bundle, before)
    actual, work = logits_after(bundle, [*before, rewrite])
    assert operator_counts(work)[operator] == rewrite.matches(work.spec)
    if tolerance == 0.0:
        np.testing.assert_array_equal(actual, expected)
    else:
        deviation = np.sqrt(np.mean((actual - expected) ** 2)) / expected.std()
        assert deviation < tolerance


@pytest.mark.parametrize("family", FAMILIES)
def test_after_all_rewrites_nothing_but_our_operators_is_left(family: str) -> None:
    work = workpiece(tiny_bundle(family))
    operate(work)
    assert leftovers(work) == []
    assert operator_counts(work) == {
        "TokenEmbedding": 1,
        "RotaryTable": 2 if family == "gemma3" else 1,
        "DecoderLayer": work.spec.layers,
        "OutputHead": 1,
    }


def test_a_layer_keeps_its_own_window_and_rotary_table() -> None:
    work = workpiece(tiny_bundle("gemma3"))
    operate(work)
    layers = [node for node in work.graph if node.op_type == "DecoderLayer"]
    window = work.spec.sliding_window
    assert [layer.attributes["window"].value for layer in layers] == [window, 0, window]
    tables = [layer.inputs[1].producer().inputs[1].name for layer in layers]
    assert tables == ["rope.local", "rope.global", "rope.local"]


def test_optional_inputs_stand_in_their_own_places() -> None:
    for family, present in (("qwen2", {14}), ("gemma3", {15, 16, 17, 18}), ("llama3", set())):
        work = workpiece(tiny_bundle(family))
        operate(work)
        layer = next(node for node in work.graph if node.op_type == "DecoderLayer")
        optional = {i for i, value in enumerate(layer.inputs) if i >= 14 and value is not None}
        assert optional == present


@pytest.mark.parametrize(
    ("broken", "replacement", "rewrite", "found"),
    [
        ("ReduceMean", "ReduceSum", "rms-norm", "4 of 5"),
        ("Cos", "Sin", "rotary-table", "0 of 1"),
        ("Sub", "Add", "rotary-embedding", "3 of 4"),
        ("Sigmoid", "Tanh", "gated-mlp", "1 of 2"),
        ("Softmax", "LogSoftmax", "tree-attention", "1 of 2"),
        ("GreaterOrEqual", "Greater", "tree-attention", "0 of 2"),  # the mask, which all share
    ],
)
def test_a_graph_of_another_shape_is_refused_by_the_rewrites_name(
    broken: str, replacement: str, rewrite: str, found: str
) -> None:
    work = workpiece(tiny_bundle("qwen2"))
    node = next(node for node in work.graph if node.op_type == broken)
    node.op_type = replacement
    with pytest.raises(SapwoodError, match=f"rewrite '{rewrite}' matched {found} places") as error:
        operate(work)
    assert "\n" not in str(error.value)


def test_an_attention_that_sees_other_slots_is_not_fused() -> None:
    work = workpiece(tiny_bundle("qwen2"))
    ranges = work.input("path_ranges")
    other = work.add_input("other_ranges", ranges.dtype, [1, 2])
    ranges.replace_all_uses_with(other)
    with pytest.raises(SapwoodError, match="rewrite 'tree-attention' matched 0 of 2"):
        operate(work)


def test_a_linear_without_packed_weights_is_an_error() -> None:
    bundle = tiny_bundle("qwen2")
    work = workpiece(bundle)
    fewer = {name: weight for name, weight in work.packed.items() if name != "layers.1.down"}
    work = Workpiece(work.model, read_spec(bundle), fewer)
    with pytest.raises(SapwoodError, match="rewrite 'quantized-linear' matched 8 of 9"):
        operate(work)
