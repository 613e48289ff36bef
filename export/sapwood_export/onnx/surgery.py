"""Runs the rewrites, and refuses a graph in which one of them does not find what it must."""

from __future__ import annotations

from collections.abc import Iterable

from sapwood.errors import SapwoodError
from sapwood_export.onnx.rewrites import REWRITES
from sapwood_export.onnx.rewrites.workpiece import DOMAIN, Rewrite, Workpiece


def operate(work: Workpiece, rewrites: Iterable[Rewrite] | None = None) -> None:
    """Applies the rewrites (all by default) in order, in place. Each must match as the spec says.

    A rewrite that matches elsewhere or not at all means that torch, onnxsim or the decoder changed
    the graph's shape: that is an error, never a slower graph in silence.
    """
    for rewrite in REWRITES if rewrites is None else rewrites:
        expected = rewrite.matches(work.spec)
        found = rewrite.apply(work)
        work.clean_up()
        if found != expected:
            raise SapwoodError(
                f"ONNX export: rewrite '{rewrite.name}' matched {found} of {expected} places in "
                "the traced graph; the installed torch or onnxsim gives a graph that this version "
                "of Sapwood does not know"
            )


def leftovers(work: Workpiece) -> list[str]:
    """Standard operators that are still in the graph, by type; a fused graph has none."""
    return sorted({node.op_type for node in work.graph if node.domain != DOMAIN})
