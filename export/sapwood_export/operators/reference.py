"""What each operator computes, in plain torch: slow, readable, and as exact as the kernels.

Linear layers follow runtime_cpp/src/kernels/linear.h: activations are quantised to int8 in groups
of 32, integer sums are exact, and the groups are added in order with fused multiply-adds. A fused
multiply-add is a product and a sum in double, rounded once to float, which is the same but for
rare double roundings. Caches have the fused layout of kv_layout.h.
"""

from __future__ import annotations

import torch
from torch import Tensor

from sapwood_export.models.decoder import Pass, activate, rms_norm, rotary_embedding, visibility
from sapwood_export.models.decoder import tree_attention as attend
from sapwood_export.packing import unpack
from sapwood_export.quantize.formats import ACTIVATION_GROUP, QuantizedRows, linear_format
from sapwood_export.spec import PANEL

KEY_TILE = 16  # slots whose keys lie together


def unpack_weight(weight: Tensor, form: str, outputs: int, inputs: int) -> QuantizedRows:
    """Codes, scales and minima of a packed uint8 tensor of any shape."""
    return unpack(linear_format(form), weight.reshape(-1).numpy(), outputs, inputs)


def quantize_rows(x: Tensor) -> tuple[Tensor, Tensor]:
    """[R, K] -> whole codes (as floats) [R, K / 32, 32], float scales [R, K / 32].

    Symmetric: scale = max|x| / 127, codes rounded to nearest, ties to even.
    """
    grouped = x.reshape(x.shape[0], -1, ACTIVATION_GROUP)
    largest = grouped.abs().amax(dim=-1)
    inverse = torch.where(largest > 0, 127.0 / largest, torch.zeros_like(largest))
    return torch.round(grouped * inverse.unsqueeze(-1)), largest / 127.0


def fused_multiply_add(a: Tensor, b: Tensor, c: Tensor) -> Tensor:
    """``a * b + c``, rounded once."""
    return (a.double() * b.double() + c.double()).float()


def quantized_linear(x: Tensor, weight: Tensor, form: str, outputs: int, inputs: int) -> Tensor:
    """x [R, inputs] -> [R, outputs] over packed weights."""
    layout = linear_format(form)
    rows = unpack_weight(weight, form, outputs, inputs)
    codes, activation_scales = quantize_rows(x)
    weight_codes = torch.from_numpy(rows.codes).float() - layout.zero_point
    weight_codes = weight_codes.reshape(outputs, -1, ACTIVATION_GROUP)
    scales = torch.from_numpy(rows.scales).float()
    minima = None if rows.minima is None else torch.from_numpy(rows.minima).float()
    # Products and sums of 32 codes are below 2^24: exact in float.
    sums = torch.einsum("rgk,ogk->gro", codes, weight_codes)
    y = torch.zeros(x.shape[0], outputs)
    parts = layout.group // ACTIVATION_GROUP  # activation groups that share a weight scale
    for weight_group in range(scales.shape[1]):
        scale = scales[:, weight_group]
        total = torch.zeros_like(y)
        for part in range(parts):
            group = weight_group * parts + part
            activation_scale = activation_scales[:, group : group + 1]
            total = total + sums[group] * activation_scale
            if part == parts - 1:
                y = fused_multiply_add(total, scale, y)
            if minima is not None:
                code_sum = codes[:, group].sum(dim=-1, keepdim=True)
                y = fused_multiply_add(minima[:, weight_group], code_sum * activation_scale, y)
    return y


def gated_linear(
    x: Tensor, gate_up: Tensor, form: str, intermediate: int, inputs: int, activation: str
) -> Tensor:
    """x [R, inputs] -> activation(gate) * up, [R, intermediate]."""
    y = quantized_linear(x, gate_up, form, 2 * intermediate, inputs)
    panels = y.reshape(-1, intermediate // PANEL, 2, PANEL)
    gate, up = panels[:, :, 0], panels[:, :, 1]
    return (activate(gate, activation) * up).reshape(-1, intermediate)


def token_embedding(
    token_ids: Tensor, table: Tensor, form: str, hidden: int, vocabulary: int, scale: float
) -> Tensor:
    """[R] -> [R, hidden]: the tokens' dequantised rows times ``scale``."""
    values = unpack_weight(table, form, vocabulary, hidden).dequantize(linear_format(form))
    return torch.from_numpy(values)[token_ids.long()] * scale


def keys_to_tiles(keys: Tensor) -> Tensor:
    """Keys [kv_heads, slots, head_dim] -> [kv_heads, slots / 16, head_dim, 16]."""
    kv_heads, slots, head_dim = keys.shape
    return (
        keys.reshape(kv_heads, slots // KEY_TILE, KEY_TILE, head_dim).transpose(2, 3).contiguous()
    )


def keys_from_tiles(tiles: Tensor) -> Tensor:
    """The inverse of :func:`keys_to_tiles`."""
    kv_heads, count, head_dim, _ = tiles.shape
    return tiles.transpose(2, 3).reshape(kv_heads, count * KEY_TILE, head_dim)


def tree_attention(
    q: Tensor,
    k: Tensor,
    v: Tensor,
    slots: Tensor,
    context_slots: Tensor,
    path_slots: Tensor,
    path_ranges: Tensor,
    past_keys: Tensor,
    past_values: Tensor,
    scale: float,
    window: int,
) -> tuple[Tensor, Tensor, Tensor]:
    """Writes k, v [R, kv_heads, head_dim] into their slots; q [R, heads, head_dim] attends.

    ``past_keys`` float16 [kv_heads, slots / 16, head_dim, 16], ``past_values`` float16 [kv_heads,
    slots, head_dim]. Returns [R, heads * head_dim] and both caches with the rows written.
    """
    index = slots.long()
    keys = keys_from_tiles(past_keys).index_copy(1, index, k.transpose(0, 1).half())
    values = past_values.index_copy(1, index, v.transpose(0, 1).half())
    positions = context_slots.shape[0] + path_ranges[:, 1] - path_ranges[:, 0] - 1
    nothing = torch.zeros(0, dtype=torch.int32)
    batch = Pass(nothing, positions, slots, context_slots, path_slots, path_ranges, nothing)
    gathered = torch.cat((context_slots, path_slots)).long()
    visible = visibility(batch, window)[1]
    out = attend(q, keys.float(), values.float(), gathered, visible, scale)
    return out, keys_to_tiles(keys), values


def decoder_layer(
    hidden: Tensor,
    rotary: Tensor,
    slots: Tensor,
    context_slots: Tensor,
    path_slots: Tensor,
    path_ranges: Tensor,
    past_keys: Tensor,
    past_values: Tensor,
    attention_norm: Tensor,
    mlp_norm: Tensor,
    qkv: Tensor,
    output: Tensor,
    gate_up: Tensor,
    down: Tensor,
    qkv_bias: Tensor | None,
    q_norm: Tensor | None,
    k_norm: Tensor | None,
    attention_post_norm: Tensor | None,
    mlp_post_norm: Tensor | None,
    heads: int,
    kv_heads: int,
    head_dim: int,
    intermediate: int,
    norm_epsilon: float,
    attention_scale: float,
    window: int,
    activation: str,
    qkv_format: str,
    output_format: str,
    gate_up_format: str,
    down_format: str,
) -> tuple[Tensor, Tensor, Tensor]:
    """A whole layer: hidden [R, H] -> hidden, and both caches with the rows written."""
    width = hidden.shape[1]
    queries, keys = heads * head_dim, kv_heads * head_dim
    x = rms_norm(hidden, attention_norm, norm_epsilon)
    projected = quantized_linear(x, qkv, qkv_format, queries + 2 * keys, width)
    if qkv_bias is not None:
        projected = projected + qkv_bias
    q, k, v = torch.split(projected, [queries, keys, keys], dim=-1)
    q = q.reshape(-1, heads, head_dim)
    k = k.reshape(-1, kv_heads, head_dim)
    v = v.reshape(-1, kv_heads, head_dim)
    if q_norm is not None and k_norm is not None:
        q, k = rms_norm(q, q_norm, norm_epsilon), rms_norm(k, k_norm, norm_epsilon)
    q, k = rotary_embedding(q, rotary), rotary_embedding(k, rotary)
    mixed, present_keys, present_values = tree_attention(
        q,
        k,
        v,
        slots,
        context_slots,
        path_slots,
        path_ranges,
        past_keys,
        past_values,
        attention_scale,
        window,
    )
    x = quantized_linear(mixed, output, output_format, width, queries)
    if attention_post_norm is not None:
        x = rms_norm(x, attention_post_norm, norm_epsilon)
    hidden = hidden + x
    x = rms_norm(hidden, mlp_norm, norm_epsilon)
    x = gated_linear(x, gate_up, gate_up_format, intermediate, width, activation)
    x = quantized_linear(x, down, down_format, width, intermediate)
    if mlp_post_norm is not None:
        x = rms_norm(x, mlp_post_norm, norm_epsilon)
    return hidden + x, present_keys, present_values


def output_head(
    hidden: Tensor,
    output_rows: Tensor,
    norm: Tensor,
    head: Tensor,
    form: str,
    norm_epsilon: float,
    vocabulary: int,
) -> Tensor:
    """hidden [R, H] -> logits [O, vocabulary] of the rows asked for."""
    last = rms_norm(hidden[output_rows.long()], norm, norm_epsilon)
    return quantized_linear(last, head, form, vocabulary, hidden.shape[1])
