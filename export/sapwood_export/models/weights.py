"""Float32 weights for the torch decoder: a model file's own, or a bundle's, dequantised."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from sapwood_export.bundle import load_bundle_weights, read_spec
from sapwood_export.sources.base import ModelSource
from sapwood_export.spec import PANEL, ModelSpec

Weights = dict[str, Tensor]


def interleave_panels(gate: Tensor, up: Tensor) -> Tensor:
    """Rows of gate and up in turn, 16 by 16, as the bundle stores them: [2 * intermediate, n]."""
    units = gate.shape[0]
    panels = torch.stack((gate.reshape(units // PANEL, -1), up.reshape(units // PANEL, -1)), dim=1)
    return panels.reshape(2 * units, -1)


def weights_from_source(source: ModelSource) -> Weights:
    """The model's own numbers under a bundle's names; nothing is quantised."""
    spec = source.spec

    def read(name: str) -> Tensor:
        return torch.from_numpy(np.array(source.tensors[name].read(), dtype=np.float32))

    weights: Weights = {
        name: read(name) for name in ("embedding", "final_norm", "head") if name in source.tensors
    }
    weights["rope.global"] = torch.from_numpy(source.rope_global.inverse_frequencies(spec.head_dim))
    if source.rope_local is not None:
        local = source.rope_local.inverse_frequencies(spec.head_dim)
        weights["rope.local"] = torch.from_numpy(local)
    parts = ["attention_norm", "mlp_norm", "output", "down"]
    if spec.post_norms:
        parts += ["attention_post_norm", "mlp_post_norm"]
    if spec.qk_norm:
        parts += ["q_norm", "k_norm"]
    for layer in range(spec.layers):
        prefix = f"layers.{layer}."
        weights |= {prefix + part: read(prefix + part) for part in parts}
        weights[prefix + "qkv"] = torch.cat([read(prefix + part) for part in ("q", "k", "v")])
        if spec.qkv_bias:
            biases = [read(prefix + part) for part in ("q_bias", "k_bias", "v_bias")]
            weights[prefix + "qkv_bias"] = torch.cat(biases)
        weights[prefix + "gate_up"] = interleave_panels(read(prefix + "gate"), read(prefix + "up"))
    return weights


def weights_from_bundle(bundle: Path) -> tuple[ModelSpec, Weights]:
    """Spec and dequantised weights of a bundle: four bytes a weight in memory."""
    weights = load_bundle_weights(bundle)
    return read_spec(bundle), {name: torch.from_numpy(value) for name, value in weights.items()}
