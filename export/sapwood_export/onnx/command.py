"""Adds the ONNX graph to a bundle: trace, simplify, rewrite, attach weights, check, write."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import TypeVar

import onnx
import onnx_ir as ir

from sapwood.errors import SapwoodError
from sapwood_export.bundle import ONNX_GRAPH, Progress, read_manifest
from sapwood_export.onnx.rewrites.workpiece import Workpiece
from sapwood_export.onnx.simplify import simplify
from sapwood_export.onnx.surgery import leftovers, operate
from sapwood_export.onnx.trace import unfused_graph
from sapwood_export.onnx.weights import attach_weights, packed_weights
from sapwood_export.spec import ModelSpec

T = TypeVar("T")

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
    steps = _Steps(progress, 5 if keep_reference else 4)
    manifest = read_manifest(bundle)
    spec = ModelSpec.from_manifest(manifest["target"]["spec"])
    unfused = steps.run("tracing the graph", lambda: simplify(unfused_graph(spec)))
    if keep_reference:
        steps.run("writing the reference graph", lambda: _write_reference(unfused.clone(), bundle))
    work = Workpiece(unfused, spec, packed_weights(manifest))
    steps.run("rewriting the graph", lambda: operate(work))
    if left := leftovers(work):
        raise SapwoodError(f"ONNX export: standard operators are left in the graph: {left}")
    attach_weights(work.model, bundle)
    path = bundle / ONNX_GRAPH
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


class _Steps:
    """Reports a step when it begins and the whole when it ends."""

    def __init__(self, progress: Progress | None, count: int) -> None:
        self._progress, self._count, self._done = progress, count, 0

    def run(self, what: str, action: Callable[[], T]) -> T:
        self._report(what)
        result = action()
        self._done += 1
        self._report(what)
        return result

    def _report(self, what: str) -> None:
        if self._progress is not None:
            self._progress(what, self._done, self._count)
