"""The decoder of the Llama, Qwen and Gemma families, slot by slot, in plain torch.

This is the reference that everything else is checked against, and what ``torch.onnx.export``
traces into the unfused graph. It is a pure function of a spec, a dictionary of float32 weights
(named as in a bundle's manifest) and one :class:`Pass`; it knows nothing of quantisation.

Formulas: pre-norm transformer with RMS norms (Zhang & Sennrich 2019), rotary embeddings in the
rotate-half form (Su et al. 2021), grouped-query attention (Ainslie et al. 2023), gated MLP (Shazeer
2020); Gemma 3 adds norms after attention and MLP and layers that see a window only.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import torch
from torch import Tensor
from torch.nn import functional

from sapwood_export.spec import PANEL, ModelSpec


class Pass(NamedTuple):
    """What one pass computes; the same fields as ``RowBatch`` in the runtime.

    R rows, C committed context slots, P flat path slots, O rows whose logits are wanted. Row r sees
    ``context_slots`` followed by ``path_slots[path_ranges[r, 0]:path_ranges[r, 1]]``; the j-th slot
    of that sequence holds position j, and the last one is ``slots[r]``. All are int32.
    """

    token_ids: Tensor  # [R]
    positions: Tensor  # [R]
    slots: Tensor  # [R], where the row's keys and values are written
    context_slots: Tensor  # [C]
    path_slots: Tensor  # [P]
    path_ranges: Tensor  # [R, 2]
    output_rows: Tensor  # [O]


class LayerInputs(NamedTuple):
    """What every layer of a pass shares. The local and window parts are those of sliding layers."""

    gathered_slots: Tensor  # int64 [C + P]: context_slots, then path_slots
    visible: Tensor  # bool [R, C + P]: which of them a row sees
    rotary: Tensor  # [R, head_dim], cos half then sin half
    visible_window: Tensor  # ``visible`` inside the sliding window
    rotary_local: Tensor


def rms_norm(x: Tensor, weight: Tensor, epsilon: float) -> Tensor:
    """``weight * x / sqrt(mean(x^2) + epsilon)`` over the last axis."""
    mean_square = (x * x).mean(-1, keepdim=True)
    return x * torch.rsqrt(mean_square + epsilon) * weight


def rotary_table(positions: Tensor, inverse_frequencies: Tensor) -> Tensor:
    """[R] positions, [head_dim / 2] inverse frequencies -> [R, head_dim], cos half then sin half.

    Angles are computed in double: at position 2,000 a float angle is off by 1e-4.
    """
    angles = positions.to(torch.float64).unsqueeze(-1) * inverse_frequencies.to(torch.float64)
    return torch.cat((torch.cos(angles), torch.sin(angles)), dim=-1).to(torch.float32)


def rotary_embedding(x: Tensor, rotary: Tensor) -> Tensor:
    """Rotates the pairs (i, i + head_dim / 2) of x [R, heads, head_dim] by rotary [R, head_dim]."""
    cos, sin = rotary.unsqueeze(1).chunk(2, dim=-1)
    first, second = x.chunk(2, dim=-1)
    return torch.cat((first * cos - second * sin, second * cos + first * sin), dim=-1)


def activate(gate: Tensor, activation: str) -> Tensor:
    """The gate's activation by its name in the manifest: ``silu`` or ``gelu_tanh``."""
    if activation == "silu":
        return functional.silu(gate)
    return functional.gelu(gate, approximate="tanh")


def gated_mlp_input(gate_up: Tensor, activation: str) -> Tensor:
    """[R, 2 * intermediate], panels of 16 gate and 16 up in turn -> activation(gate) * up."""
    units = gate_up.shape[-1] // 2
    panels = gate_up.reshape(-1, units // PANEL, 2, PANEL)
    gate = panels[:, :, 0].reshape(-1, units)
    up = panels[:, :, 1].reshape(-1, units)
    return activate(gate, activation) * up


def visibility(batch: Pass, window: int) -> tuple[Tensor, Tensor]:
    """Which of the C + P gathered slots each row sees: bool [R, C + P], in all and in the window.

    A row at position p sees positions above ``p - window``; with ``window`` 0 no layer slides.
    """
    context = batch.context_slots.shape[0]
    begin = batch.path_ranges[:, :1]
    end = batch.path_ranges[:, 1:]
    column = torch.arange(batch.path_slots.shape[0], dtype=torch.int32).unsqueeze(0)
    on_path = (column >= begin) & (column < end)
    in_context = torch.ones_like(begin, dtype=torch.bool).expand(-1, context)
    visible = torch.cat((in_context, on_path), dim=1)
    if window == 0:
        return visible, visible
    context_positions = torch.arange(context, dtype=torch.int32).unsqueeze(0)
    seen_positions = torch.cat(
        (context_positions.expand(begin.shape[0], -1), column - begin + context), dim=1
    )
    near = seen_positions > batch.positions.unsqueeze(-1) - window
    return visible, visible & near


def prepare(
    spec: ModelSpec, weights: Mapping[str, Tensor], batch: Pass
) -> tuple[Tensor, LayerInputs]:
    """Embeds the tokens; returns hidden [R, hidden_size] and what the layers share."""
    hidden = functional.embedding(batch.token_ids, weights["embedding"])
    if spec.embedding_scale != 1.0:
        hidden = hidden * spec.embedding_scale
    slides = any(spec.layer_is_sliding)
    visible, window = visibility(batch, spec.sliding_window if slides else 0)
    rotary = rotary_table(batch.positions, weights["rope.global"])
    local = rotary_table(batch.positions, weights["rope.local"]) if slides else rotary
    slots = torch.cat((batch.context_slots, batch.path_slots)).to(torch.int64)
    return hidden, LayerInputs(slots, visible, rotary, window, local)


def store(past: Tensor, slots: Tensor, rows: Tensor) -> Tensor:
    """past [kv_heads, slots, head_dim] with rows [R, kv_heads, head_dim] in their slots."""
    by_head = rows.transpose(0, 1)
    index = slots.to(torch.int64).reshape(1, -1, 1).expand_as(by_head)
    return past.scatter(1, index, by_head)


def tree_attention(
    q: Tensor, keys: Tensor, values: Tensor, slots: Tensor, visible: Tensor, scale: float
) -> Tensor:
    """Attention of q [R, heads, head_dim] over a layer's cache, each row over the slots it sees.

    keys and values are [kv_heads, slots, head_dim]; query head h reads kv head
    ``h // (heads // kv_heads)``. Returns [R, heads * head_dim].
    """
    kv_heads, _, head_dim = keys.shape
    heads = q.shape[1]
    grouped = q.reshape(-1, kv_heads, heads // kv_heads, head_dim).permute(1, 2, 0, 3)
    gathered_keys = keys.index_select(1, slots).unsqueeze(1)
    gathered_values = values.index_select(1, slots).unsqueeze(1)
    scores = torch.matmul(grouped, gathered_keys.transpose(-1, -2)) * scale
    # A row always sees itself, so no row is masked from end to end.
    scores = torch.where(visible, scores, float("-inf"))
    mixed = torch.matmul(torch.softmax(scores, dim=-1), gathered_values)
    return mixed.permute(2, 0, 1, 3).reshape(-1, heads * head_dim)


def decoder_layer(
    spec: ModelSpec,
    weights: Mapping[str, Tensor],
    hidden: Tensor,
    rotary: Tensor,
    visible: Tensor,
    gathered_slots: Tensor,
    slots: Tensor,
    past_keys: Tensor,
    past_values: Tensor,
) -> tuple[Tensor, Tensor, Tensor]:
    """One layer: hidden [R, hidden_size] -> hidden, the layer's keys and values after the pass.

    ``weights`` are the layer's own, without ``layers.i.`` in front of their names.
    """
    heads, kv_heads, head_dim = spec.heads, spec.kv_heads, spec.head_dim

    x = rms_norm(hidden, weights["attention_norm"], spec.norm_epsilon)
    qkv = torch.matmul(x, weights["qkv"].T)
    if spec.qkv_bias:
        qkv = qkv + weights["qkv_bias"]
    sizes = [heads * head_dim, kv_heads * head_dim, kv_heads * head_dim]
    q, k, v = torch.split(qkv, sizes, dim=-1)
    q = q.reshape(-1, heads, head_dim)
    k = k.reshape(-1, kv_heads, head_dim)
    v = v.reshape(-1, kv_heads, head_dim)
    if spec.qk_norm:
        q = rms_norm(q, weights["q_norm"], spec.norm_epsilon)
        k = rms_norm(k, weights["k_norm"], spec.norm_epsilon)
    q = rotary_embedding(q, rotary)
    k = rotary_embedding(k, rotary)
    keys = store(past_keys, slots, k)
    values = store(past_values, slots, v)
    mixed = tree_attention(q, keys, values, gathered_slots, visible, spec.attention_scale)
    x = torch.matmul(mixed, weights["output"].T)
    if spec.post_norms:
        x = rms_norm(x, weights["attention_post_norm"], spec.norm_epsilon)
    hidden = hidden + x

    x = rms_norm(hidden, weights["mlp_norm"], spec.norm_epsilon)
    gate_up = torch.matmul(x, weights["gate_up"].T)
    x = torch.matmul(gated_mlp_input(gate_up, spec.activation), weights["down"].T)
    if spec.post_norms:
        x = rms_norm(x, weights["mlp_post_norm"], spec.norm_epsilon)
    return hidden + x, keys, values


def output_head(
    spec: ModelSpec, weights: Mapping[str, Tensor], hidden: Tensor, output_rows: Tensor
) -> Tensor:
    """Logits [O, vocabulary_size] of the rows asked for."""
    last = hidden.index_select(0, output_rows)
    last = rms_norm(last, weights["final_norm"], spec.norm_epsilon)
    return torch.matmul(last, weights["embedding" if spec.tied_head else "head"].T)


def layer_weights(weights: Mapping[str, Tensor], layer: int) -> dict[str, Tensor]:
    """The weights of one layer, without ``layers.i.`` in front of their names."""
    prefix = f"layers.{layer}."
    return {
        name.removeprefix(prefix): tensor
        for name, tensor in weights.items()
        if name.startswith(prefix)
    }


def decode(
    spec: ModelSpec,
    weights: Mapping[str, Tensor],
    batch: Pass,
    past_keys: Sequence[Tensor],
    past_values: Sequence[Tensor],
) -> tuple[Tensor, list[Tensor], list[Tensor]]:
    """One pass over all layers.

    ``past_keys[i]`` and ``past_values[i]`` are float32 [kv_heads, slots, head_dim] of layer i.
    Returns logits [O, vocabulary_size] and the caches with this pass's rows written.
    """
    hidden, shared = prepare(spec, weights, batch)
    present_keys: list[Tensor] = []
    present_values: list[Tensor] = []
    for layer, sliding in enumerate(spec.layer_is_sliding):
        hidden, keys, values = decoder_layer(
            spec,
            layer_weights(weights, layer),
            hidden,
            shared.rotary_local if sliding else shared.rotary,
            shared.visible_window if sliding else shared.visible,
            shared.gathered_slots,
            batch.slots,
            past_keys[layer],
            past_values[layer],
        )
        present_keys.append(keys)
        present_values.append(values)
    return output_head(spec, weights, hidden, batch.output_rows), present_keys, present_values
