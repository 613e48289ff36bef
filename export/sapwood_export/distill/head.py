"""The draft head: one decoder layer over what the target has already computed.

After EAGLE-3 (Li et al. 2025, "Scaling up Inference Acceleration of Large Language Models via
Training-Time Test"). Row i of the text, with token x_i and the target's hidden states f_i of some
of its layers side by side, foretells x_{i+2} from x_{i+1} (h = hidden size, k = layers kept)::

    g_i    = W_fuse f_i                                       [h], f_i is [k * h]
    z_i    = W_input [norm(e(x_{i+1})); norm(g_i)]            [h]
    a_i    = decoder_layer(z_i)                               [h], one layer of the target's family
    logits = W_head norm(a_i)                                 [subset of the vocabulary]

Where the target has not verified position i yet, g_i is a_{i-1}: the head reads its own output.
Training does the same: step 0 computes every row from the target's states, step j every row from
step j - 1, and a row of step j sees of the others exactly what it would see while drafting: rows
verified j positions ago and before, then the rows of its own path, one from each step.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn import functional

from sapwood_export.distill.draft_folder import LAYER
from sapwood_export.models.decoder import gated_mlp_input, rms_norm, rotary_embedding
from sapwood_export.spec import ModelSpec

Weights = Mapping[str, Tensor]


@dataclass(frozen=True)
class HeadInputs:
    """B windows of T rows of text. Row t of a window stands for some position i of a sequence.

    Several short sequences may share a window; ``visible`` keeps them apart.
    """

    embedded: Tensor  # [B, T, h], e(x_{i+1}), scaled as the target scales it
    features: Tensor  # [B, T, k * h], f_i
    rotary: Tensor  # [B, T, head_dim], of position i; cos half, then sin half
    visible: Tensor  # bool [B, T, T]: row t sees row s <= t of the same sequence


def fused_input(weights: Weights, embedded: Tensor, feature: Tensor, norm_epsilon: float) -> Tensor:
    """z [..., h] from the token's embedding and a feature g, both [..., h]."""
    both = torch.cat(
        (
            _norm(embedded, weights["embedding_norm"], norm_epsilon),
            _norm(feature, weights["feature_norm"], norm_epsilon),
        ),
        dim=-1,
    )
    return linear(both, weights["input"])


def unrolled_states(
    spec: ModelSpec, weights: Weights, inputs: HeadInputs, steps: int
) -> list[Tensor]:
    """a of each step, float32 [B, T, h].

    A row of step j is meaningless within the first j rows of its sequence: nothing was drafted for
    it. The caller leaves those out.
    """
    feature = linear(inputs.features, weights["fuse"])
    states: list[Tensor] = []
    keys: list[Tensor] = []
    values: list[Tensor] = []
    for step in range(steps):
        if step > 0:
            feature = shifted(states[-1], 1)
        z = fused_input(weights, inputs.embedded, feature, spec.norm_epsilon)
        states.append(_layer(spec, weights, z, inputs, keys, values))
    return states


def output_states(weights: Weights, state: Tensor, norm_epsilon: float) -> Tensor:
    """What head and uncertainty network read: a after its norm."""
    return rms_norm(state, weights["output_norm"], norm_epsilon)


def linear(x: Tensor, weight: Tensor) -> Tensor:
    """x [..., inputs] by weight [outputs, inputs], in the weight's precision; float32 out."""
    return functional.linear(x.to(weight.dtype), weight).float()


def shifted(x: Tensor, rows: int) -> Tensor:
    """x [B, T, ...] moved ``rows`` later in the window; zeros come in."""
    if rows == 0:
        return x
    return torch.cat((torch.zeros_like(x[:, :rows]), x[:, :-rows]), dim=1)


def _norm(x: Tensor, weight: Tensor, epsilon: float) -> Tensor:
    return rms_norm(x.float(), weight.float(), epsilon)


def _layer(
    spec: ModelSpec,
    weights: Weights,
    hidden: Tensor,
    inputs: HeadInputs,
    keys: list[Tensor],
    values: list[Tensor],
) -> Tensor:
    """One layer over all rows of a step, [B, T, h]; appends the step's keys and values."""

    def norm(x: Tensor, name: str) -> Tensor:
        return _norm(x, weights[LAYER + name], spec.norm_epsilon)

    batch, rows, _ = hidden.shape
    qkv = linear(norm(hidden, "attention_norm"), weights[LAYER + "qkv"])
    if spec.qkv_bias:
        qkv = qkv + weights[LAYER + "qkv_bias"].float()
    sizes = [spec.heads * spec.head_dim] + 2 * [spec.kv_heads * spec.head_dim]
    q, k, v = (
        part.reshape(batch, rows, -1, spec.head_dim) for part in torch.split(qkv, sizes, dim=-1)
    )
    if spec.qk_norm:
        q, k = norm(q, "q_norm"), norm(k, "k_norm")
    rotary = inputs.rotary.flatten(0, 1)
    q = rotary_embedding(q.flatten(0, 1), rotary).view_as(q)
    k = rotary_embedding(k.flatten(0, 1), rotary).view_as(k)
    precision = weights[LAYER + "qkv"].dtype
    keys.append(k.to(precision))
    values.append(v.to(precision))
    mixed = _attention(q.to(precision), keys, values, inputs.visible, spec.attention_scale)
    x = linear(mixed.reshape(batch, rows, -1), weights[LAYER + "output"])
    if spec.post_norms:
        x = norm(x, "attention_post_norm")
    hidden = hidden + x

    x = norm(hidden, "mlp_norm").flatten(0, 1).to(precision)
    gate_up = functional.linear(x, weights[LAYER + "gate_up"])
    x = linear(gated_mlp_input(gate_up, spec.activation), weights[LAYER + "down"])
    x = x.view_as(hidden)
    if spec.post_norms:
        x = norm(x, "mlp_post_norm")
    return hidden + x


def _attention(
    q: Tensor,
    keys: Sequence[Tensor],
    values: Sequence[Tensor],
    visible: Tensor,
    scale: float,
) -> Tensor:
    """Attention of the rows of the latest step, q [B, T, heads, d], over the steps' keys.

    Row t of step j sees step 0 as row t - j does, and of step m = 1 .. j the row t - j + m.
    """
    batch, rows, kv_heads, head_dim = keys[0].shape
    last = len(keys) - 1
    # [B, kv_heads, group, T, d] by [B, kv_heads, 1, d, T]
    grouped = q.view(batch, rows, kv_heads, -1, head_dim).permute(0, 2, 3, 1, 4)
    scores = grouped @ keys[0].permute(0, 2, 3, 1).unsqueeze(2) * scale
    scores = scores.masked_fill(~shifted(visible, last)[:, None, None], float("-inf"))

    def own_path(tensors: Sequence[Tensor]) -> list[Tensor]:  # each [B, kv_heads, 1, T, d]
        steps = enumerate(tensors[1:], start=1)
        moved = [shifted(tensor, last - step) for step, tensor in steps]
        return [tensor.transpose(1, 2).unsqueeze(2) for tensor in moved]

    if last == 0:
        shares = torch.softmax(scores, dim=-1)
    else:
        path = [(grouped * key).sum(-1, keepdim=True) * scale for key in own_path(keys)]
        shares = torch.softmax(torch.cat((scores, *path), dim=-1), dim=-1)
    mixed = shares[..., :rows] @ values[0].transpose(1, 2).unsqueeze(2)
    for step, value in enumerate(own_path(values)):
        mixed = mixed + shares[..., rows + step, None] * value
    return mixed.permute(0, 3, 1, 2, 4)
