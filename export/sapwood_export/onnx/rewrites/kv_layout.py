"""kv-layout: the caches become float16 graph inputs and outputs in the operator's own layout.

Takes away the conversions that tree-attention put around its operator, so that the host can bind a
cache's input and output to the same memory. Runs after tree-attention.
"""

from __future__ import annotations

from collections.abc import Sequence

import onnx_ir as ir

from sapwood_export.onnx.pattern import Any, find, op
from sapwood_export.onnx.rewrites.workpiece import DOMAIN, Rewrite, Workpiece
from sapwood_export.operators.reference import KEY_TILE

_HALF = ir.DataType.FLOAT16
_TILED = op("Reshape", op("Cast", Any("past_keys"), to=_HALF.value), Any("tiles"))
_KEYS, _VALUES = 7, 8  # the operator's inputs; its cache outputs are 1 and 2
ATTENTION = op(
    "TreeAttention",
    *(Any(f"input {index}") for index in range(_KEYS)),
    op("Transpose", _TILED, perm=[0, 1, 3, 2]),
    op("Cast", Any("past_values"), to=_HALF.value),
    domain=DOMAIN,
)


def _apply(work: Workpiece) -> int:
    spec = work.spec
    key_shape: list[int | str] = [spec.kv_heads, "tiles", spec.head_dim, KEY_TILE]
    value_shape: list[int | str] = [spec.kv_heads, "slots", spec.head_dim]
    count = 0
    for match in find(work.graph, ATTENTION):
        attention = match.nodes[ATTENTION]
        keys = _graph_output(attention.outputs[1], ["Transpose", "Reshape", "Cast"])
        values = _graph_output(attention.outputs[2], ["Cast"])
        past_keys, past_values = match.value("past_keys"), match.value("past_values")
        if keys is None or values is None:
            continue
        if not (past_keys.is_graph_input() and past_values.is_graph_input()):
            continue
        attention.replace_input_with(_KEYS, past_keys)
        attention.replace_input_with(_VALUES, past_values)
        _become_output(work, keys, attention.outputs[1])
        _become_output(work, values, attention.outputs[2])
        for value in (past_keys, attention.outputs[1]):
            value.type, value.shape = ir.TensorType(_HALF), ir.Shape(key_shape)
        for value in (past_values, attention.outputs[2]):
            value.type, value.shape = ir.TensorType(_HALF), ir.Shape(value_shape)
        count += 1
    return count


def _graph_output(value: ir.Value, chain: Sequence[str]) -> ir.Value | None:
    """The graph output at the end of a chain of nodes of these types; None if there is none."""
    for op_type in chain:
        nodes = [node for node in value.consumers() if node.op_type == op_type]
        if len(nodes) != 1:
            return None
        value = nodes[0].outputs[0]
    return value if value.is_graph_output() else None


def _become_output(work: Workpiece, old: ir.Value, new: ir.Value) -> None:
    """Makes ``new`` the graph output that ``old`` was."""
    name = old.name
    old.name = f"{name}/replaced"
    work.graph.outputs[list(work.graph.outputs).index(old)] = new
    new.name = name


REWRITE = Rewrite("kv-layout", lambda spec: spec.layers, _apply)
