"""Drafts of random weights for tiny bundles: what the runtime must refuse to be misled by."""

from __future__ import annotations

from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from sapwood_export.bundle import read_dequantized, read_manifest
from sapwood_export.distill.draft_folder import (
    HEAD,
    PARALLEL_HEADS,
    DraftFormats,
    DraftWeights,
    write_draft,
)

DEPTHS = 3  # of parallel heads


def write_tiny_draft(
    out: Path,
    bundle: Path,
    *,
    kind: str = HEAD,
    subset: int = 400,
    units: int = 8,
    seed: int = 0,
    head_of_target: bool = False,
    graph: bool = False,
) -> Path:
    """A draft folder for the target in ``bundle``; returns ``out``."""
    generator = np.random.default_rng(seed)
    spec = read_manifest(bundle)["target"]["spec"]
    hidden, layers = spec["hidden_size"], spec["layers"]

    def matrix(outputs: int, inputs: int) -> NDArray[np.float32]:
        return (generator.standard_normal((outputs, inputs)) / np.sqrt(inputs)).astype(np.float32)

    def norm(length: int) -> NDArray[np.float32]:
        return generator.uniform(0.8, 1.2, length).astype(np.float32)

    feature_layers = (1, layers)
    tensors = {
        "fuse": matrix(hidden, len(feature_layers) * hidden),
        "input": matrix(hidden, 2 * hidden),
        "embedding_norm": norm(hidden),
        "feature_norm": norm(hidden),
        "output_norm": norm(hidden),
        "head": 4 * matrix(subset, hidden),
    }
    if kind == PARALLEL_HEADS:
        tensors |= {f"parallel.{depth}": matrix(hidden, hidden) for depth in range(DEPTHS)}
    else:
        heads = spec["heads"] * spec["head_dim"]
        outputs = heads + 2 * spec["kv_heads"] * spec["head_dim"]
        tensors |= {
            "layer.attention_norm": norm(hidden),
            "layer.qkv": matrix(outputs, hidden),
            "layer.output": matrix(hidden, heads),
            "layer.mlp_norm": norm(hidden),
            "layer.gate_up": matrix(2 * spec["intermediate_size"], hidden),
            "layer.down": matrix(hidden, spec["intermediate_size"]),
        }
    if units:
        tensors |= {
            "uncertainty.w1": matrix(units, hidden),
            "uncertainty.b1": norm(units),
            "uncertainty.w2": norm(units) - 1,
            "uncertainty.b2": norm(1) - 1,
        }
    ids = np.sort(generator.choice(spec["vocabulary_size"], subset, replace=False))
    if head_of_target:
        tied = spec["tied_head"]
        tensors["head"] = read_dequantized(bundle, "embedding" if tied else "head")[ids]
    weights = DraftWeights(kind, feature_layers, ids.astype(np.int32), tensors)
    write_draft(out, bundle, "tiny-draft", weights, DraftFormats(), {}, "# A random draft\n", graph)
    return out
