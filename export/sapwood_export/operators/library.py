"""Registers the operators with torch as ``torch.ops.sapwood.*``: schema, shapes, reference.

Importing this module registers them once. Graphs traced by ``torch.export`` keep a call to one of
them whole: the shape half below says what it gives for symbolic rows, slots and outputs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import torch
from torch import Tensor

from sapwood_export.models import decoder
from sapwood_export.operators import reference, tree
from sapwood_export.operators.layer import layer_schema

_PASS = "Tensor slots, Tensor context_slots, Tensor path_slots, Tensor path_ranges"
_CACHE = "Tensor past_keys, Tensor past_values"

SCHEMAS = {
    "rms_norm": "(Tensor x, Tensor weight, float epsilon) -> Tensor",
    "rotary_table": "(Tensor positions, Tensor inverse_frequencies) -> Tensor",
    "rotary_embedding": "(Tensor x, Tensor rotary) -> Tensor",
    "quantized_linear": "(Tensor x, Tensor weight, str form, int outputs, int inputs) -> Tensor",
    "gated_linear": "(Tensor x, Tensor gate_up, str form, int intermediate, int inputs, "
    "str activation) -> Tensor",
    "token_embedding": "(Tensor token_ids, Tensor table, str form, int hidden, int vocabulary, "
    "float scale) -> Tensor",
    "tree_attention": f"(Tensor q, Tensor k, Tensor v, {_PASS}, {_CACHE}, float scale, int window)"
    " -> (Tensor, Tensor, Tensor)",
    "decoder_layer": f"(Tensor hidden, Tensor rotary, {_PASS}, {_CACHE}, {layer_schema()}) -> "
    "(Tensor, Tensor, Tensor)",
    "output_head": "(Tensor hidden, Tensor output_rows, Tensor norm, Tensor head, str form, "
    "float norm_epsilon, int vocabulary) -> Tensor",
    "dynamic_tree_prune": "(Tensor logits, Tensor entropy_threshold, Tensor? uncertainty, "
    "int max_tree_width, float beta_base, float rho_min, float rho_max, float entropy_low) "
    "-> (Tensor, Tensor, Tensor)",
    "block_sparse_verify": "(Tensor target_logits, Tensor draft_logits, Tensor tree_mask, "
    "Tensor importance_weights, Tensor? draw, str verifier, float temperature) "
    "-> (Tensor, Tensor, Tensor)",
}


def _like_first(first: Tensor, *_: object) -> Tensor:
    return torch.empty_like(first)


def _rotary_table_shape(positions: Tensor, inverse_frequencies: Tensor) -> Tensor:
    return inverse_frequencies.new_empty(positions.shape[0], 2 * inverse_frequencies.shape[0])


def _quantized_linear_shape(
    x: Tensor, weight: Tensor, form: str, outputs: int, inputs: int
) -> Tensor:
    return x.new_empty(x.shape[0], outputs)


def _gated_linear_shape(
    x: Tensor, gate_up: Tensor, form: str, intermediate: int, inputs: int, activation: str
) -> Tensor:
    return x.new_empty(x.shape[0], intermediate)


def _token_embedding_shape(
    token_ids: Tensor, table: Tensor, form: str, hidden: int, vocabulary: int, scale: float
) -> Tensor:
    return token_ids.new_empty(token_ids.shape[0], hidden, dtype=torch.float32)


def _tree_attention_shape(
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
    mixed = q.new_empty(q.shape[0], q.shape[1] * q.shape[2])
    return mixed, torch.empty_like(past_keys), torch.empty_like(past_values)


def _decoder_layer_shape(
    hidden: Tensor,
    rotary: Tensor,
    slots: Tensor,
    context_slots: Tensor,
    path_slots: Tensor,
    path_ranges: Tensor,
    past_keys: Tensor,
    past_values: Tensor,
    *weights_and_sizes: object,
) -> tuple[Tensor, Tensor, Tensor]:
    return torch.empty_like(hidden), torch.empty_like(past_keys), torch.empty_like(past_values)


def _output_head_shape(
    hidden: Tensor,
    output_rows: Tensor,
    norm: Tensor,
    head: Tensor,
    form: str,
    norm_epsilon: float,
    vocabulary: int,
) -> Tensor:
    return hidden.new_empty(output_rows.shape[0], vocabulary)


_IMPLEMENTATIONS: dict[str, tuple[Callable[..., Any], Callable[..., Any]]] = {
    "rms_norm": (decoder.rms_norm, _like_first),
    "rotary_table": (decoder.rotary_table, _rotary_table_shape),
    "rotary_embedding": (decoder.rotary_embedding, _like_first),
    "quantized_linear": (reference.quantized_linear, _quantized_linear_shape),
    "gated_linear": (reference.gated_linear, _gated_linear_shape),
    "token_embedding": (reference.token_embedding, _token_embedding_shape),
    "tree_attention": (reference.tree_attention, _tree_attention_shape),
    "decoder_layer": (reference.decoder_layer, _decoder_layer_shape),
    "output_head": (reference.output_head, _output_head_shape),
    "dynamic_tree_prune": (tree.dynamic_tree_prune, tree.dynamic_tree_prune_shape),
    "block_sparse_verify": (tree.block_sparse_verify, tree.block_sparse_verify_shape),
}


def _register() -> Any:
    handle: Any = torch.library.Library("sapwood", "DEF")  # type: ignore[no-untyped-call]
    for name, schema in SCHEMAS.items():
        compute, shape = _IMPLEMENTATIONS[name]
        handle.define(name + schema)
        handle.impl(name, compute, "CPU")
        torch.library.register_fake(f"sapwood::{name}", shape, lib=handle)
    return handle


_HANDLE = _register()  # the operators live as long as this does


def operators() -> Any:
    """The registered operators, ``torch.ops.sapwood``."""
    return torch.ops.sapwood
