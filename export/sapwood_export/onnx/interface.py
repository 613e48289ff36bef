"""What a decoder's graph takes and gives: inputs, weights and symbolic dimensions by name."""

from __future__ import annotations

from sapwood_export.spec import ModelSpec

OPSET = 20  # the first with Gelu

# Symbolic dimensions of the graph, as they are named in it.
ROWS, CONTEXT, PATHS, OUTPUTS, SLOTS, VISIBLE = (
    "rows",
    "context",
    "paths",
    "outputs",
    "slots",
    "visible",
)
PASS_INPUTS: dict[str, tuple[str | int, ...]] = {
    "token_ids": (ROWS,),
    "positions": (ROWS,),
    "slots": (ROWS,),
    "context_slots": (CONTEXT,),
    "path_slots": (PATHS,),
    "path_ranges": (ROWS, 2),
    "output_rows": (OUTPUTS,),
}


def weight_shapes(spec: ModelSpec) -> dict[str, tuple[int, ...]]:
    """Every weight of the decoder by its name in the manifest, with its shape."""
    shapes: dict[str, tuple[int, ...]] = {
        "embedding": (spec.vocabulary_size, spec.hidden_size),
        "rope.global": (spec.head_dim // 2,),
        "final_norm": (spec.hidden_size,),
    }
    if any(spec.layer_is_sliding):
        shapes["rope.local"] = (spec.head_dim // 2,)
    if not spec.tied_head:
        shapes["head"] = (spec.vocabulary_size, spec.hidden_size)
    for layer in range(spec.layers):
        for name, shape in layer_weight_shapes(spec).items():
            shapes[f"layers.{layer}.{name}"] = shape
    return shapes


def layer_weight_shapes(spec: ModelSpec) -> dict[str, tuple[int, ...]]:
    """The weights of one layer, without ``layers.i.`` in front of their names."""
    hidden, head_dim, intermediate = spec.hidden_size, spec.head_dim, spec.intermediate_size
    shapes: dict[str, tuple[int, ...]] = {
        "attention_norm": (hidden,),
        "qkv": (spec.qkv_outputs, hidden),
        "output": (hidden, spec.heads * head_dim),
        "mlp_norm": (hidden,),
        "gate_up": (2 * intermediate, hidden),
        "down": (hidden, intermediate),
    }
    if spec.qkv_bias:
        shapes["qkv_bias"] = (spec.qkv_outputs,)
    if spec.qk_norm:
        shapes |= {"q_norm": (head_dim,), "k_norm": (head_dim,)}
    if spec.post_norms:
        shapes |= {"attention_post_norm": (hidden,), "mlp_post_norm": (hidden,)}
    return shapes
