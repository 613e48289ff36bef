"""Parallel heads: several tokens ahead at once, from what the target has verified alone.

After Medusa (Cai et al. 2024), over the same fused input as the head in ``head.py``, without a
decoder layer and without a cache. With z of the last verified row i, for d = 1 .. K::

    logits_d = W_head norm(z + silu(W_d z))        of x_{i+1+d}, whatever lies in between
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

from sapwood_export.distill.head import HeadInputs, Weights, fused_input, linear, output_states
from sapwood_export.spec import ModelSpec

PARALLEL = "parallel."  # in front of the number of a head's matrix W_d, counted from 0


def initial_parallel(weights: dict[str, Tensor], heads: int) -> dict[str, Tensor]:
    """Of a head's initial weights those that parallel heads have, and their own, which add
    nothing yet."""
    h = weights["output_norm"].shape[0]
    kept = ("fuse", "input", "embedding_norm", "feature_norm", "output_norm")
    own = {f"{PARALLEL}{number}": torch.zeros(h, h) for number in range(heads)}
    return {name: weights[name] for name in kept} | own


def parallel_states(
    spec: ModelSpec, weights: Weights, inputs: HeadInputs, heads: int
) -> list[Tensor]:
    """What the head matrix reads for d = 1 .. heads, float32 [B, T, h] each."""
    feature = linear(inputs.features, weights["fuse"])
    z = fused_input(weights, inputs.embedded, feature, spec.norm_epsilon)
    return [
        output_states(
            weights,
            z + functional.silu(linear(z, weights[f"{PARALLEL}{number}"])),
            spec.norm_epsilon,
        )
        for number in range(heads)
    ]
