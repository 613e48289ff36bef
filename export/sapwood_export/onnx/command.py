"""Adds the ONNX graph to a bundle: trace, simplify, rewrite, attach weights, check, write."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import onnx
import onnx_ir as ir

from sapwood.errors import SapwoodError
from sapwood_export.bundle import DRAFT_GRAPH, ONNX_GRAPH, Progress, read_manifest
from sapwood_export.onnx.prune_controller import append_prune_controller
from sapwood_export.onnx.rewrites.workpiece import Workpiece
from sapwood_export.onnx.simplify import simplify
from sapwood_export.onnx.surgery import leftovers, operate
from sapwood_export.onnx.trace import unfused_graph
from sapwood_export.onnx.weights import attach_weights, packed_weights
from sapwood_export.spec import ModelSpec
from sapwood_export.steps import Steps

REFERENCE_GRAPH = "reference.onnx"
REFERENCE_WEIGHTS = "reference.weights"


def export_onnx(
    bundle: Path, progress: Progress | None = None, keep_reference: bool = False
) -> None:
    """Writes ``target.onnx`` beside a bundle's weights, which it refers to and does not copy.

    ``keep_reference`` also writes the unfused graph of standard operators, ``reference.onnx``, with
    the dequantised weights in ``reference.weights``: four bytes a weight. The caller lists the new
    files in the manifest. Takes seconds and little memory, whatever the model's size.
    """
    steps = Steps(progress, 5 if keep_reference else 4)
    manifest = read_manifest(bundle)
    spec = ModelSpec.from_manifest(manifest["target"]["spec"])
    unfused = steps.run("tracing the graph", lambda: simplify(unfused_graph(spec)))
    if keep_reference:
        steps.run("writing the reference graph", lambda: _write_reference(unfused.clone(), bundle))
    _fuse_and_write(Workpiece(unfused, spec, packed_weights(manifest)), bundle, ONNX_GRAPH, steps)


def export_draft_graph(
    bundle: Path, layers: int | None = None, progress: Progress | None = None
) -> None:
    """Writes ``draft.onnx`` beside a bundle's weights: a model whose outputs are pruned candidates.

    The graph of ``export_onnx``, of the first ``layers`` layers or of all, with the pruning
    controller after its logits (``prune_controller.py``). The caller lists the file.
    """
    manifest = read_manifest(bundle)
    spec = ModelSpec.from_manifest(manifest["target"]["spec"])
    if layers is not None:
        spec = replace(spec, layers=layers, layer_is_sliding=tuple(spec.layer_is_sliding[:layers]))
    steps = Steps(progress, 4)
    unfused = steps.run("tracing the draft", lambda: simplify(unfused_graph(spec)))
    work = Workpiece(unfused, spec, packed_weights(manifest))
    _fuse_and_write(work, bundle, DRAFT_GRAPH, steps, append_prune_controller)


def _fuse_and_write(
    work: Workpiece,
    bundle: Path,
    name: str,
    steps: Steps,
    finish: Callable[[ir.Model], None] | None = None,
) -> None:
    steps.run("rewriting the graph", lambda: operate(work))
    if left := leftovers(work):
        raise SapwoodError(f"ONNX export: standard operators are left in the graph: {left}")
    attach_weights(work.model, bundle)
    if finish is not None:
        finish(work.model)
    path = bundle / name
    steps.run("writing the graph", lambda: ir.save(work.model, path))
    steps.run("checking the graph", lambda: onnx.checker.check_model(str(path), full_check=True))


def _write_reference(model: ir.Model, bundle: Path) -> None:
    attach_weights(model, bundle)
    ir.save(
        model,
        bundle / REFERENCE_GRAPH,
        external_data=REFERENCE_WEIGHTS,
        size_threshold_bytes=1024,
    )
