"""The weights that a draft starts from: the target's own, and a least-squares fit."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import torch
from torch import Tensor

from sapwood_export.bundle import read_dequantized
from sapwood_export.distill.draft_folder import LAYER
from sapwood_export.distill.windows import Batch
from sapwood_export.models.decoder import rms_norm
from sapwood_export.models.weights import Weights
from sapwood_export.spec import ModelSpec

_RIDGE = 1e-3  # of an input's own mean square
_SMALLEST = 1e-6  # keeps an input that is always zero from making the system singular


def layer_tensors(spec: ModelSpec) -> tuple[str, ...]:
    """Names of a decoder layer's tensors in a bundle, without ``layers.i.``."""
    names = ["attention_norm", "qkv"]
    names += ["qkv_bias"] * spec.qkv_bias
    names += ["q_norm", "k_norm"] * spec.qk_norm
    names += ["output"] + ["attention_post_norm"] * spec.post_norms
    names += ["mlp_norm", "gate_up", "down"]
    names += ["mlp_post_norm"] * spec.post_norms
    return tuple(names)


def read_tensor(bundle: Path, name: str) -> Tensor:
    return torch.from_numpy(read_dequantized(bundle, name))


def read_head(bundle: Path, spec: ModelSpec) -> Tensor:
    """The target's head, float32 [vocabulary, h]."""
    return read_tensor(bundle, "embedding" if spec.tied_head else "head")


def initial_weights(bundle: Path, spec: ModelSpec, feature_count: int) -> Weights:
    """A draft that reads the highest of its features through the target's last layer and norm.

    ``fit_inputs`` makes more of fuse and input.
    """
    h = spec.hidden_size
    last = f"layers.{spec.layers - 1}."
    weights = {LAYER + name: read_tensor(bundle, last + name) for name in layer_tensors(spec)}
    weights["fuse"] = torch.cat((torch.zeros(h, (feature_count - 1) * h), torch.eye(h)), dim=1)
    weights["input"] = torch.cat((torch.zeros(h, h), torch.eye(h)), dim=1)
    weights["embedding_norm"] = torch.ones(h)
    weights["feature_norm"] = torch.ones(h)
    weights["output_norm"] = read_tensor(bundle, "final_norm")
    return weights


def fit_inputs(weights: Weights, batches: Iterable[Batch], norm_epsilon: float) -> None:
    """Sets fuse and input so that z is about the target's state of the highest kept layer at the
    *next* position, by ridge regression on the token's embedding and the features.

    That state is what the target would compute with all of its layers; a linear map of the token
    and of what precedes it is a start that training would need many batches to find.
    """
    h = weights["output_norm"].shape[0]
    inputs = h + weights["fuse"].shape[1]
    gram = torch.zeros(inputs + h, inputs + h, dtype=torch.float64)
    count = 0
    for batch in batches:
        rows = batch.rows(0)
        token = batch.inputs.embedded.flatten(0, 1)[rows]
        token = rms_norm(token, torch.ones(h), norm_epsilon)
        features = batch.inputs.features.flatten(0, 1)[rows].float()
        goal = batch.final.flatten(0, 1)[rows].float()
        joint = torch.cat((token, features, goal), dim=1)
        gram += (joint.T @ joint).double()
        count += len(rows)
    covariance, products = gram[:inputs, :inputs], gram[:inputs, inputs:]
    solution = torch.linalg.solve(
        covariance + torch.diag(_RIDGE * covariance.diagonal() + _SMALLEST), products
    ).T
    from_token, from_features = solution[:, :h], solution[:, h:]
    # g is normalised before it is read: its usual size goes into W_input.
    squares = torch.trace(from_features @ covariance[h:, h:] @ from_features.T) / (count * h)
    weights["fuse"] = from_features.float().contiguous()
    weights["input"] = torch.cat((from_token, squares.sqrt() * torch.eye(h)), dim=1).float()
