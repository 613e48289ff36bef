"""The surgery: named rewrites that turn the unfused graph into the fused one, in this order."""

from __future__ import annotations

from sapwood_export.onnx.rewrites import (
    decoder_layer,
    embedding,
    gated_mlp,
    kv_layout,
    linear,
    output_head,
    rms_norm,
    rotary,
    tree_attention,
)
from sapwood_export.onnx.rewrites.workpiece import Rewrite

REWRITES: tuple[Rewrite, ...] = (
    rms_norm.REWRITE,
    rotary.ROTARY_TABLE,
    rotary.ROTARY_EMBEDDING,
    linear.REWRITE,
    gated_mlp.REWRITE,
    tree_attention.REWRITE,
    kv_layout.REWRITE,
    embedding.REWRITE,
    output_head.REWRITE,
    decoder_layer.REWRITE,
)
