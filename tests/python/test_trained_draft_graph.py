"""`draft.onnx` of a trained draft, beside the runtime's own pass over the same weights."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

pytest.importorskip("torch")
onnx = pytest.importorskip("onnx")
onnxruntime = pytest.importorskip("onnxruntime")

from operator_graphs import session_options  # noqa: E402
from sapwood import _runtime  # noqa: E402
from sapwood_export.bundle import read_dequantized, read_spec  # noqa: E402
from sapwood_export.distill.draft_folder import PARALLEL_HEADS, read_draft  # noqa: E402
from tiny_drafts import write_tiny_draft  # noqa: E402

SLOTS = 64
TEXT, GUESSES = 5, 3
Outputs = dict[str, "np.ndarray[Any, Any]"]


def run(folder: Path, feeds: Outputs) -> Outputs:
    session = onnxruntime.InferenceSession(str(folder / "draft.onnx"), session_options())
    names = [output.name for output in session.get_outputs()]
    return dict(zip(names, session.run(names, feeds), strict=True))


def test_the_heads_graph_has_the_bits_of_the_runtime_for_text_and_guesses(
    tiny_bundle: Path, tmp_path: Path
) -> None:
    folder = write_tiny_draft(tmp_path / "draft", tiny_bundle, graph=True)
    spec, draft = read_spec(tiny_bundle), read_draft(folder)
    generator = np.random.default_rng(3)
    tokens = generator.integers(0, spec.vocabulary_size, TEXT + GUESSES).astype(np.int32)
    features = generator.standard_normal((TEXT, 2 * spec.hidden_size)).astype(np.float32)
    parents = generator.standard_normal((GUESSES, spec.hidden_size)).astype(np.float32)
    rows = np.arange(TEXT + GUESSES, dtype=np.int32)
    # The guesses are three children of the text's last row.
    positions = np.minimum(rows, TEXT).astype(np.int32)
    paths = [list(range(row + 1)) for row in range(TEXT)]
    paths += [[*range(TEXT), TEXT + guess] for guess in range(GUESSES)]
    ends = np.cumsum([len(path) for path in paths])
    ranges = np.stack([ends - [len(path) for path in paths], ends], axis=1).astype(np.int32)
    path_slots = np.array([slot for path in paths for slot in path], np.int32)

    head = _runtime.DraftHead.open(str(folder), target_folder=str(tiny_bundle), threads=1)
    logits, states = head.forward(
        head.make_kv(SLOTS),
        tokens=tokens.tolist(),
        positions=positions.tolist(),
        slots=rows.tolist(),
        context_slots=[],
        path_slots=path_slots.tolist(),
        path_begin=ranges[:, 0].tolist(),
        path_end=ranges[:, 1].tolist(),
        features=features,
        states=parents,
    )
    scale = np.float32(spec.embedding_scale)
    cache = (spec.kv_heads, SLOTS // 16, spec.head_dim, 16)
    results = run(
        folder,
        {
            "embedded": read_dequantized(tiny_bundle, "embedding")[tokens] * scale,
            "features": features,
            "states": parents,
            "positions": positions,
            "slots": rows,
            "context_slots": np.zeros(0, np.int32),
            "path_slots": path_slots,
            "path_ranges": ranges,
            "output_rows": rows,
            "past_keys.0": np.zeros(cache, np.float16),
            "past_values.0": np.zeros((spec.kv_heads, SLOTS, spec.head_dim), np.float16),
        },
    )
    subset = len(draft.vocabulary_ids)
    assert results["logits"].tobytes() == np.ascontiguousarray(logits[:, :subset]).tobytes()
    assert results["row_states"].tobytes() == states.tobytes()
    told = [head.uncertainty(state) for state in states]
    np.testing.assert_allclose(results["uncertainty"], told, atol=1e-5)
    kept, weights, mask = _runtime.dynamic_tree_prune(results["logits"])
    assert results["kept_indices"].tobytes() == kept.tobytes()
    assert results["importance_weights"].tobytes() == weights.tobytes()
    assert results["tree_mask"].tobytes() == mask.tobytes()
    model = onnx.load(folder / "draft.onnx", load_external_data=False)
    assert {node.op_type for node in model.graph.node} >= {"DecoderLayer", "OutputHead"}
    assert (folder / "draft.onnx").stat().st_size < 20_000, "the weights lie in draft.weights"


def test_parallel_heads_give_the_laws_of_all_depths(tiny_bundle: Path, tmp_path: Path) -> None:
    folder = write_tiny_draft(tmp_path / "draft", tiny_bundle, kind=PARALLEL_HEADS, graph=True)
    spec, draft = read_spec(tiny_bundle), read_draft(folder)
    generator = np.random.default_rng(3)
    embedded = generator.standard_normal((1, spec.hidden_size)).astype(np.float32)
    features = generator.standard_normal((1, 2 * spec.hidden_size)).astype(np.float32)
    results = run(folder, {"embedded": embedded, "features": features})

    def normed(x: Any, name: str) -> Any:
        mean = np.mean(x * x, axis=-1, keepdims=True)
        return x / np.sqrt(mean + spec.norm_epsilon) * draft.tensors[name]

    both = [normed(embedded, "embedding_norm")]
    both += [normed(features @ draft.tensors["fuse"].T, "feature_norm")]
    z = np.concatenate(both, axis=1) @ draft.tensors["input"].T
    for depth in range(draft.parallel):
        own = z @ draft.tensors[f"parallel.{depth}"].T
        state = normed(z + own / (1 + np.exp(-own)), "output_norm")
        law = (state @ draft.tensors["head"].T)[0]
        difference = np.linalg.norm(results["logits"][depth] - law) / np.linalg.norm(law)
        assert difference < 0.03, depth  # activations are rounded to eight bits
        assert 0 < results["uncertainty"][depth] < 1


def test_the_graph_is_listed_and_the_draft_still_opens(tiny_bundle: Path, tmp_path: Path) -> None:
    folder = write_tiny_draft(tmp_path / "draft", tiny_bundle, graph=True)
    _runtime.check_draft(str(folder))
    (folder / "draft.onnx").write_bytes(b"damaged")
    with pytest.raises(Exception, match=r"draft\.onnx"):
        _runtime.check_draft(str(folder))
