"""The unfused graph: standard ONNX operators, every weight a graph input.

Weights are inputs while the graph is worked on, so that no step holds, copies or folds hundreds of
megabytes; ``weights.py`` turns them into initialisers at the end.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import onnx_ir as ir

from sapwood_export.onnx.interface import (
    OPSET,
    PASS_INPUTS,
    SLOTS,
    layer_weight_shapes,
    weight_shapes,
)
from sapwood_export.onnx.pieces import Head, Layer, Prepare, TracedPiece, trace
from sapwood_export.spec import ModelSpec


def unfused_graph(spec: ModelSpec) -> ir.Model:
    """The decoder's graph of standard operators, with the pass, caches and weights as inputs.

    Inputs: the seven of a pass (int32), ``past_keys.i`` and ``past_values.i`` (float32 [kv_heads,
    slots, head_dim]), then the weights by name. Outputs: ``logits`` [outputs, vocabulary],
    ``present_keys.i``, ``present_values.i``.
    """
    graph = _Stitched(spec.family)
    values = {
        name: graph.add_input(name, ir.DataType.INT32, shape) for name, shape in PASS_INPUTS.items()
    }
    cache_shape = (spec.kv_heads, SLOTS, spec.head_dim)
    for layer in range(spec.layers):
        for kind in ("past_keys", "past_values"):
            name = f"{kind}.{layer}"
            values[name] = graph.add_input(name, ir.DataType.FLOAT, cache_shape)
    for name, shape in weight_shapes(spec).items():
        values[name] = graph.add_input(name, ir.DataType.FLOAT, shape)

    pieces = trace({"prepare": Prepare(spec), "layer": Layer(spec), "head": Head(spec)})
    shared = graph.add_piece("prepare/", pieces["prepare"], values)
    hidden = shared["hidden"]
    present: dict[str, ir.Value] = {}
    for layer, sliding in enumerate(spec.layer_is_sliding):
        layer_values = {
            "hidden": hidden,
            "rotary": shared["rotary_local" if sliding else "rotary"],
            "visible": shared["visible_window" if sliding else "visible"],
            "gathered_slots": shared["gathered_slots"],
            "slots": values["slots"],
            "past_keys": values[f"past_keys.{layer}"],
            "past_values": values[f"past_values.{layer}"],
        }
        for name in layer_weight_shapes(spec):
            layer_values[name] = values[f"layers.{layer}.{name}"]
        results = graph.add_piece(f"layers.{layer}/", pieces["layer"], layer_values)
        hidden = results["hidden"]
        present[f"present_keys.{layer}"] = results["present_keys"]
        present[f"present_values.{layer}"] = results["present_values"]
    head = graph.add_piece("head/", pieces["head"], values | {"hidden": hidden})
    graph.add_output("logits", head["logits"])
    for name, value in present.items():
        graph.add_output(name, value)
    return graph.model()


class _Stitched:
    """A graph put together from traced pieces."""

    def __init__(self, name: str) -> None:
        self._graph = ir.Graph([], [], nodes=[], opset_imports={"": OPSET}, name=name)

    def add_input(self, name: str, dtype: ir.DataType, shape: Sequence[str | int]) -> ir.Value:
        value = ir.Value(name=name, type=ir.TensorType(dtype), shape=ir.Shape(shape))
        self._graph.inputs.append(value)
        return value

    def add_output(self, name: str, value: ir.Value) -> None:
        value.name = name
        self._graph.outputs.append(value)

    def add_piece(
        self, prefix: str, piece: TracedPiece, inputs: Mapping[str, ir.Value]
    ) -> dict[str, ir.Value]:
        """Copies a piece's nodes, its inputs taken by name. Returns its outputs by name."""
        copies = {value: inputs[name] for name, value in piece.inputs.items()}
        for node in piece.nodes:
            outputs = [
                ir.Value(name=f"{prefix}{value.name}", type=value.type, shape=value.shape)
                for value in node.outputs
            ]
            self._graph.append(
                ir.Node(
                    node.domain,
                    node.op_type,
                    [self._copied(value, copies, prefix) for value in node.inputs],
                    list(node.attributes.values()),
                    outputs=outputs,
                    name=f"{prefix}{node.name}",
                )
            )
            copies.update(zip(node.outputs, outputs, strict=True))
        return {name: copies[value] for name, value in piece.outputs.items()}

    def _copied(
        self, value: ir.Value | None, copies: dict[ir.Value, ir.Value], prefix: str
    ) -> ir.Value | None:
        """The copy of a node's input; constants are copied when they are first met."""
        if value is None or value in copies:
            return None if value is None else copies[value]
        assert value.const_value is not None, f"{value.name} comes from another piece"
        copy = ir.Value(
            name=f"{prefix}{value.name}",
            type=value.type,
            shape=value.shape,
            const_value=value.const_value,
        )
        self._graph.register_initializer(copy)
        copies[value] = copy
        return copy

    def model(self) -> ir.Model:
        return ir.Model(self._graph, ir_version=10, producer_name="sapwood")
