"""Tiny bundles of each family and their traced graphs, made once a test run."""

from __future__ import annotations

import functools
import tempfile
from collections.abc import Iterable
from pathlib import Path

import numpy as np
import onnx_ir as ir

from sapwood_export.bundle import read_manifest, read_spec
from sapwood_export.command import export
from sapwood_export.models.session import Logits, SlotSession
from sapwood_export.onnx.rewrites import REWRITES
from sapwood_export.onnx.rewrites.workpiece import Rewrite, Workpiece
from sapwood_export.onnx.simplify import simplify
from sapwood_export.onnx.surgery import operate
from sapwood_export.onnx.trace import unfused_graph
from sapwood_export.onnx.weights import attach_weights, packed_weights
from sapwood_export.spec import ModelSpec
from tiny_transformers import save_model, tiny_model

_FOLDER = tempfile.TemporaryDirectory(prefix="sapwood-graphs-")
SLOTS = 64


@functools.cache
def tiny_bundle(family: str) -> Path:
    """A native bundle of a small random model."""
    folder = Path(_FOLDER.name)
    source = save_model(tiny_model(family), folder / f"{family}-source", family)
    return export(source, folder / family).output


@functools.cache
def _traced(spec: ModelSpec) -> ir.Model:
    return unfused_graph(spec)


def traced(spec: ModelSpec) -> ir.Model:
    """The spec's unfused graph as torch gives it; traced once, a fresh copy each time."""
    return _traced(spec).clone()


@functools.cache
def _simplified(spec: ModelSpec) -> ir.Model:
    return simplify(traced(spec))


def workpiece(bundle: Path) -> Workpiece:
    """The bundle's unfused graph, ready for rewrites; a fresh copy each time."""
    spec = read_spec(bundle)
    return Workpiece(_simplified(spec).clone(), spec, packed_weights(read_manifest(bundle)))


def rewritten(bundle: Path, rewrites: Iterable[Rewrite]) -> tuple[Path, Workpiece]:
    """The graph after these rewrites, written beside the bundle's weights."""
    work = workpiece(bundle)
    rewrites = list(rewrites)
    operate(work, rewrites)
    attach_weights(work.model, bundle)
    names = "+".join(rewrite.name for rewrite in rewrites)
    path = bundle / f"{names or 'unfused'}.onnx"
    ir.save(work.model, path)
    return path, work


def rewrite_named(name: str) -> Rewrite:
    return next(rewrite for rewrite in REWRITES if rewrite.name == name)


def read_and_branch(session: SlotSession, vocabulary: int) -> Logits:
    """Logits of a prompt in two passes and of a tree after it: [27 + 5, vocabulary]."""
    tokens = np.random.default_rng(7).integers(0, vocabulary, 32).tolist()
    logits = [session.extend(tokens[:20]), session.extend(tokens[20:27])]
    logits.append(session.tree(tokens[27:], parents=[-1, 0, 0, -1, 2]))
    return np.concatenate(logits)
