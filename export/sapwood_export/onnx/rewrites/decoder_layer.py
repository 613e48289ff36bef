"""decoder-layer: the operators of one whole layer become a single DecoderLayer.

Runs last: it is written over RmsNorm, RotaryEmbedding, QuantizedLinear, GatedLinear and
TreeAttention with the caches in the operator's layout.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import onnx_ir as ir

from sapwood_export.onnx.pattern import Any, Match, Node, Number, Pattern, find, op
from sapwood_export.onnx.rewrites.workpiece import DOMAIN, Rewrite, Workpiece
from sapwood_export.operators.layer import LAYER_WEIGHTS, OPTIONAL_WEIGHTS
from sapwood_export.spec import ModelSpec

_REQUIRED = ("hidden", "rotary", "slots", "context_slots", "path_slots", "path_ranges")


@dataclass(frozen=True)
class LayerPattern:
    """The pattern of a layer, and the nodes in it whose attributes are needed."""

    last: Node
    attention: Node
    norms: tuple[Node, ...]
    linears: dict[str, Node]  # by the name of their weight


def layer_pattern(spec: ModelSpec) -> LayerPattern:
    """What one layer of this spec looks like after all other rewrites."""
    norms: list[Node] = []
    linears: dict[str, Node] = {}
    hidden, rotary = Any("hidden"), Any("rotary")

    def norm(x: Pattern, weight: str) -> Node:
        norms.append(op("RmsNorm", x, Any(weight), domain=DOMAIN))
        return norms[-1]

    def linear(x: Pattern, weight: str, op_type: str = "QuantizedLinear") -> Node:
        linears[weight] = op(op_type, x, Any(weight), domain=DOMAIN)
        return linears[weight]

    def rotated(x: Pattern, weight: str, heads: int) -> Node:
        x = op("Reshape", x, Number((-1, heads, spec.head_dim)))
        if spec.qk_norm:
            x = norm(x, weight)
        return op("RotaryEmbedding", x, rotary, domain=DOMAIN)

    queries, keys = spec.heads * spec.head_dim, spec.kv_heads * spec.head_dim
    qkv = linear(norm(hidden, "attention_norm"), "qkv")
    if spec.qkv_bias:
        qkv = op("Add", qkv, Any("qkv_bias"))
    split = op("Split", qkv, Number((queries, keys, keys)))
    attention = op(
        "TreeAttention",
        rotated(split.output(0), "q_norm", spec.heads),
        rotated(split.output(1), "k_norm", spec.kv_heads),
        op("Reshape", split.output(2), Number((-1, spec.kv_heads, spec.head_dim))),
        *(Any(name) for name in _REQUIRED[2:]),
        Any("past_keys"),
        Any("past_values"),
        domain=DOMAIN,
    )
    mixed = linear(attention, "output")
    if spec.post_norms:
        mixed = norm(mixed, "attention_post_norm")
    middle = op("Add", hidden, mixed)
    gated = linear(norm(middle, "mlp_norm"), "gate_up", "GatedLinear")
    down = linear(gated, "down")
    if spec.post_norms:
        down = norm(down, "mlp_post_norm")
    return LayerPattern(op("Add", middle, down), attention, tuple(norms), linears)


def _apply(work: Workpiece) -> int:
    pattern = layer_pattern(work.spec)
    count = 0
    for match in find(work.graph, pattern.last):
        epsilons = {match.attribute(norm, "epsilon") for norm in pattern.norms}
        if len(epsilons) == 1:
            _substitute(work, match, pattern, epsilons.pop())
            count += 1
    return count


def _substitute(work: Workpiece, match: Match, pattern: LayerPattern, epsilon: float) -> None:
    spec = work.spec
    attributes = {
        "heads": spec.heads,
        "kv_heads": spec.kv_heads,
        "head_dim": spec.head_dim,
        "intermediate": spec.intermediate_size,
        "norm_epsilon": epsilon,
        "attention_scale": match.attribute(pattern.attention, "scale"),
        "window": match.attribute(pattern.attention, "window"),
        "activation": match.attribute(pattern.linears["gate_up"], "activation"),
    }
    for name, linear in pattern.linears.items():
        attributes[f"{name}_format"] = match.attribute(linear, "format")
    last = match.nodes[pattern.last]
    hidden = work.replace(last.outputs[0])
    caches = [work.replace(match.value(pattern.attention.output(index))) for index in (1, 2)]
    inputs = layer_node_inputs(match.values.get)
    work.node(last, "DecoderLayer", inputs, attributes, [hidden, *caches])


def layer_node_inputs(value_of: Callable[[str], ir.Value | None]) -> list[ir.Value | None]:
    """A DecoderLayer's inputs in order, by their names; those it may lack may be None."""
    inputs = [value_of(name) for name in (*_REQUIRED, "past_keys", "past_values", *LAYER_WEIGHTS)]
    optional = [value_of(name) for name in OPTIONAL_WEIGHTS]
    while optional and optional[-1] is None:
        optional.pop()
    return [*inputs, *optional]


REWRITE = Rewrite("decoder-layer", lambda spec: spec.layers, _apply)
