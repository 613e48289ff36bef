"""`draft.onnx`: a draft's graph with the pruning controller as a subgraph of its own."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")
onnx = pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")

import onnx_ir as ir  # noqa: E402

from conftest import Sapwood, refused  # noqa: E402
from graph_tools import SLOTS, tiny_bundle, traced  # noqa: E402
from operator_graphs import session_options  # noqa: E402
from sapwood import _runtime  # noqa: E402
from sapwood_export.bundle import read_manifest, read_spec  # noqa: E402
from sapwood_export.onnx import command  # noqa: E402
from sapwood_export.onnx.command import export_draft_graph, export_onnx  # noqa: E402
from sapwood_export.onnx.prune_controller import (  # noqa: E402
    FUNCTION,
    FUNCTION_DOMAIN,
    THRESHOLD,
    WIDTH,
)
from text_rows import text_rows  # noqa: E402

TOKENS = [5, 9, 2, 7, 7, 1, 30, 4, 12, 3]
Outputs = dict[str, "np.ndarray[Any, Any]"]


def run_graph(graph: Path, extra: dict[str, Any] | None = None) -> Outputs:
    """A prompt of ten tokens, logits of every row."""
    session = onnxruntime.InferenceSession(str(graph), session_options())
    rows = np.arange(len(TOKENS), dtype=np.int32)
    feeds: dict[str, Any] = {
        "token_ids": np.array(TOKENS, np.int32),
        "positions": rows,
        "slots": rows,
        "context_slots": np.zeros(0, np.int32),
        "path_slots": rows,
        "path_ranges": np.stack([np.zeros_like(rows), rows + 1], axis=1),
        "output_rows": rows,
    }
    sizes = {"slots": SLOTS, "tiles": SLOTS // 16}
    for value in session.get_inputs():
        if value.name.startswith("past_"):
            shape = [sizes.get(size, size) for size in value.shape]
            feeds[value.name] = np.zeros(shape, np.float16)
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(names, feeds | (extra or {})), strict=True))


@pytest.fixture(scope="module", params=["llama3", "qwen2", "gemma3"])
def bundle(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp(request.param) / "bundle"
    shutil.copytree(tiny_bundle(request.param), folder)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(command, "unfused_graph", traced)  # saves traces that other tests made
        export_onnx(folder)
        export_draft_graph(folder)
    return folder


def test_the_controller_is_one_named_subgraph_after_the_logits(bundle: Path) -> None:
    model = onnx.load(bundle / "draft.onnx", load_external_data=False)
    (node,) = [node for node in model.graph.node if node.domain == FUNCTION_DOMAIN]
    assert (node.op_type, node.input[0]) == (FUNCTION, "logits")
    (function,) = model.functions
    assert function.name == FUNCTION
    assert "DynamicTreePrune" in {inner.op_type for inner in function.node}
    assert "DynamicTreePrune" not in {outer.op_type for outer in model.graph.node}
    session = onnxruntime.InferenceSession(str(bundle / "draft.onnx"), session_options())
    shapes = {output.name: output.shape for output in session.get_outputs()}
    assert shapes["kept_indices"] == ["outputs", WIDTH]
    assert shapes["kept_counts"] == ["outputs"]


def test_the_logits_are_the_targets_and_the_candidates_what_the_runtime_makes_of_them(
    bundle: Path,
) -> None:
    target = run_graph(bundle / "target.onnx")
    for threshold in (None, 1.0, 4.0):
        fed = {} if threshold is None else {THRESHOLD: np.array([threshold], np.float32)}
        draft = run_graph(bundle / "draft.onnx", fed)
        assert draft["logits"].tobytes() == target["logits"].tobytes()
        options = {} if threshold is None else {"entropy_threshold": threshold}
        kept, weights, mask = _runtime.dynamic_tree_prune(draft["logits"], **options)
        assert draft["kept_indices"].tobytes() == kept.tobytes()
        assert draft["importance_weights"].tobytes() == weights.tobytes()
        assert draft["tree_mask"].tobytes() == mask.tobytes()
        assert draft["kept_counts"].tolist() == mask.sum(axis=1).tolist()


def test_log_q_kept_is_the_kept_law_and_agrees_with_the_weights(bundle: Path) -> None:
    draft = run_graph(bundle / "draft.onnx")
    logits = torch.from_numpy(draft["logits"]).double()
    log_q = torch.log_softmax(logits, dim=-1).numpy()
    kept = draft["tree_mask"].astype(bool)
    assert kept.any(axis=1).all()
    assert np.isneginf(draft["log_q_kept"][~kept]).all()
    np.testing.assert_allclose(np.exp(draft["log_q_kept"]).sum(axis=1), 1, atol=1e-5)
    of_kept = np.take_along_axis(log_q, np.maximum(draft["kept_indices"], 0), axis=1)
    expected = of_kept + np.log(np.where(kept, draft["importance_weights"], 1))
    np.testing.assert_allclose(draft["log_q_kept"][kept], expected[kept], atol=1e-5)


def test_an_early_exits_graph_has_its_layers_and_its_bits(tmp_path: Path) -> None:
    source = tiny_bundle("gemma3")
    layers = 2
    folder = tmp_path / "bundle"
    shutil.copytree(source, folder)
    export_draft_graph(folder, layers)
    graph = ir.load(folder / "draft.onnx").graph
    assert sum(node.op_type == "DecoderLayer" for node in graph) == layers

    manifest = read_manifest(folder) | {"drafters": [{"kind": "early_exit", "layers": layers}]}
    (folder / "manifest.json").write_text(json.dumps(manifest))
    target = _runtime.open_native_model(str(folder), threads=2)
    model = _runtime.open_early_exit(str(folder), target=target, threads=2)
    spec = read_spec(folder)
    logits = model.forward(
        _runtime.KvStore.create(layers, spec.kv_heads, spec.head_dim, SLOTS),
        **text_rows(TOKENS),
    )
    assert run_graph(folder / "draft.onnx")["logits"].tobytes() == logits.tobytes()


def test_the_command_lists_the_graph_and_needs_the_onnx_format(
    sapwood: Sapwood, tiny_source: Path, tmp_path: Path
) -> None:
    bundle = tmp_path / "bundle"
    refused(sapwood("export", tiny_source, "--output", bundle, "--draft-graph"), "--format onnx")
    assert not bundle.exists()
    sapwood(
        *("export", tiny_source, "--output", bundle, "--format", "onnx", "--draft-graph"),
        *("--early-exit", "1"),
    )
    report = json.loads(sapwood("inspect", bundle, "--json").stdout)
    assert report["drafters"] == [
        {"kind": "early_exit", "layers": 1},
        {"kind": "pruned_graph", "file": "draft.onnx"},
    ]
    assert "draft.onnx" in {entry["name"] for entry in report["files"]}
    assert "pruned graph draft.onnx" in sapwood("inspect", bundle).stdout
