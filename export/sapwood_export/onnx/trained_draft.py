"""``draft.onnx`` of a trained draft: its pass as a graph of our operators over ``draft.weights``.

A head's pass (distill/head.py has the formulas), rows of text first, then rows of guesses::

    embedded [rows, h]            e(token) of every row, scaled: the target has the table
    features [verified, k * h]    the target's hidden states of the rows of text
    states [rows - verified, h]   what this graph gave for the parents of the others
    positions, slots, context_slots, path_slots, path_ranges, output_rows    as in target.onnx
    past_keys.0, past_values.0    of its one layer
    -> logits [outputs, subset], row_states [rows, h], present_keys.0, present_values.0,
       uncertainty [outputs] where the draft has that network, and what the pruning controller makes
       of the logits (prune_controller.py); entry i of a law is token vocabulary_ids[i]

Parallel heads have neither cache nor guesses: embedded [1, h], features [1, k * h] -> logits
[depths, subset], uncertainty [depths].
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnx
import onnx_ir as ir

from sapwood_export.bundle import DRAFT_GRAPH, Manifest, read_dequantized, read_spec
from sapwood_export.distill.draft_folder import HEAD, LAYER
from sapwood_export.onnx.interface import OPSET, OUTPUTS, PASS_INPUTS, ROWS, SLOTS
from sapwood_export.onnx.prune_controller import append_prune_controller
from sapwood_export.onnx.rewrites.decoder_layer import layer_node_inputs
from sapwood_export.onnx.rewrites.workpiece import DOMAIN, DOMAIN_VERSION
from sapwood_export.operators.reference import KEY_TILE

_VERIFIED, _GUESSES = "verified", "guesses"
_FLOAT, _HALF = ir.DataType.FLOAT, ir.DataType.FLOAT16


def write_trained_draft_graph(folder: Path, manifest: Manifest, bundle: Path) -> Path:
    """Writes the graph into a draft's folder, beside the weights that it refers to.

    ``manifest``: the draft's; ``bundle``: its target's. The caller lists the file.
    """
    graph = _Graph(folder, manifest["draft"], read_spec(bundle).norm_epsilon)
    if graph.draft["kind"] == HEAD:
        _head(graph, read_dequantized(bundle, "rope.global"))
    else:
        _parallel_heads(graph)
    model = graph.model(manifest["name"])
    append_prune_controller(model)
    path = folder / DRAFT_GRAPH
    ir.save(model, path)
    onnx.checker.check_model(str(path), full_check=True)
    return path


class _Graph:
    """A graph in the making. Values are known by their names, weights by those of the manifest."""

    def __init__(self, folder: Path, draft: Mapping[str, Any], norm_epsilon: float) -> None:
        self.draft = draft
        self.spec = draft["spec"]
        self.subset = int(draft["subset"])
        self.hidden = int(draft["tensors"]["output_norm"]["shape"][0])
        self.features = len(draft["feature_layers"]) * self.hidden
        self.epsilon = float(self.spec.get("norm_epsilon", norm_epsilon))
        self._folder = folder
        self._graph = ir.Graph([], [], nodes=[], opset_imports={"": OPSET, DOMAIN: DOMAIN_VERSION})

    def input(self, name: str, dtype: ir.DataType, shape: Sequence[str | int]) -> ir.Value:
        value = ir.Value(name=name, type=ir.TensorType(dtype), shape=ir.Shape(shape))
        self._graph.inputs.append(value)
        return value

    def output(
        self, value: ir.Value, name: str, shape: Sequence[str | int], dtype: ir.DataType = _FLOAT
    ) -> None:
        value.name, value.type, value.shape = name, ir.TensorType(dtype), ir.Shape(shape)
        self._graph.outputs.append(value)

    def constant(self, name: str, array: np.ndarray[Any, Any]) -> ir.Value:
        tensor = ir.tensor(array, name=name)
        return self._register(name, tensor, array.shape)

    def has(self, name: str) -> bool:
        return name in self.draft["tensors"]

    def weight(self, name: str) -> ir.Value:
        """A tensor of the draft: its packed bytes, or its numbers."""
        entry = self.draft["tensors"][name]
        plain = entry["format"] == "float32"
        shape = entry["shape"] if plain else [entry["bytes"]]
        tensor = ir.ExternalTensor(
            self.draft["weights"],
            entry["offset"],
            entry["bytes"],
            _FLOAT if plain else ir.DataType.UINT8,
            shape=ir.Shape(shape),
            name=name,
            base_dir=self._folder,
        )
        return self._register(name, tensor, shape)

    def _register(self, name: str, tensor: ir.TensorProtocol, shape: Sequence[int]) -> ir.Value:
        if name in self._graph.initializers:
            return self._graph.initializers[name]
        value = ir.Value(
            name=name, type=ir.TensorType(tensor.dtype), shape=ir.Shape(shape), const_value=tensor
        )
        self._graph.register_initializer(value)
        return value

    def node(
        self,
        op_type: str,
        given: Sequence[ir.Value | None],
        *,
        count: int = 1,
        **attributes: Any,
    ) -> Sequence[ir.Value]:
        """A standard operator with so many outputs."""
        return self._node("", op_type, given, count, attributes)

    def ours(
        self,
        op_type: str,
        given: Sequence[ir.Value | None],
        *,
        count: int = 1,
        **attributes: Any,
    ) -> Sequence[ir.Value]:
        """One of our operators."""
        return self._node(DOMAIN, op_type, given, count, attributes)

    def _node(
        self,
        domain: str,
        op_type: str,
        inputs: Sequence[ir.Value | None],
        outputs: int,
        attributes: Mapping[str, Any],
    ) -> Sequence[ir.Value]:
        node = ir.Node(
            domain,
            op_type,
            inputs,
            ir.convenience.convert_attributes(attributes),
            num_outputs=outputs,
            name=f"{op_type}.{len(self._graph)}",
        )
        self._graph.append(node)
        return node.outputs

    def linear(self, x: ir.Value, name: str) -> ir.Value:
        entry = self.draft["tensors"][name]
        outputs, inputs = entry["shape"]
        (y,) = self.ours(
            "QuantizedLinear",
            [x, self.weight(name)],
            format=entry["format"],
            outputs=outputs,
            inputs=inputs,
        )
        return y

    def norm(self, x: ir.Value, name: str) -> ir.Value:
        (y,) = self.ours("RmsNorm", [x, self.weight(name)], epsilon=self.epsilon)
        return y

    def folded(self, embedded: ir.Value, feature: ir.Value) -> ir.Value:
        """z of distill/head.py."""
        parts = [self.norm(embedded, "embedding_norm"), self.norm(feature, "feature_norm")]
        (both,) = self.node("Concat", parts, axis=1)
        return self.linear(both, "input")

    def uncertainty(self, normed: ir.Value, rows: str | int) -> None:
        """The network of distill/uncertainty.py, where the draft has it."""
        if not self.has("uncertainty.w1"):
            return
        first, second = self.weight("uncertainty.w1"), self.weight("uncertainty.w2")
        (units,) = self.node("Gemm", [normed, first, self.weight("uncertainty.b1")], transB=1)
        (units,) = self.node("Relu", [units])
        (logit,) = self.node("MatMul", [units, second])
        (logit,) = self.node("Add", [logit, self.weight("uncertainty.b2")])
        (probability,) = self.node("Sigmoid", [logit])
        self.output(probability, "uncertainty", [rows])

    def model(self, name: str) -> ir.Model:
        self._graph.name = name
        return ir.Model(self._graph, ir_version=10, producer_name="sapwood")


def _head(graph: _Graph, inverse_frequencies: np.ndarray[Any, Any]) -> None:
    spec, h = graph.spec, graph.hidden
    embedded = graph.input("embedded", _FLOAT, [ROWS, h])
    features = graph.input("features", _FLOAT, [_VERIFIED, graph.features])
    states = graph.input("states", _FLOAT, [_GUESSES, h])
    given = {
        name: graph.input(name, ir.DataType.INT32, shape)
        for name, shape in PASS_INPUTS.items()
        if name != "token_ids"
    }
    key_shape = [spec["kv_heads"], "tiles", spec["head_dim"], KEY_TILE]
    value_shape = [spec["kv_heads"], SLOTS, spec["head_dim"]]
    keys = graph.input("past_keys.0", _HALF, key_shape)
    values = graph.input("past_values.0", _HALF, value_shape)

    (feature,) = graph.node("Concat", [graph.linear(features, "fuse"), states], axis=0)
    frequencies = graph.constant("rope.global", inverse_frequencies.astype(np.float32))
    (rotary,) = graph.ours("RotaryTable", [given["positions"], frequencies])
    given |= {"hidden": graph.folded(embedded, feature), "rotary": rotary}
    given |= {"past_keys": keys, "past_values": values}

    def layer_input(name: str) -> ir.Value | None:
        if name in given:
            return given[name]
        return graph.weight(LAYER + name) if graph.has(LAYER + name) else None

    linears = ("qkv", "output", "gate_up", "down")
    formats = {f"{name}_format": graph.draft["tensors"][LAYER + name]["format"] for name in linears}
    row_states, new_keys, new_values = graph.ours(
        "DecoderLayer",
        layer_node_inputs(layer_input),
        count=3,
        heads=spec["heads"],
        kv_heads=spec["kv_heads"],
        head_dim=spec["head_dim"],
        intermediate=spec["intermediate_size"],
        norm_epsilon=graph.epsilon,
        attention_scale=float(spec["attention_scale"]),
        window=0,
        activation=spec["activation"],
        **formats,
    )
    (logits,) = graph.ours(
        "OutputHead",
        [row_states, given["output_rows"], graph.weight("output_norm"), graph.weight("head")],
        format=graph.draft["tensors"]["head"]["format"],
        norm_epsilon=graph.epsilon,
        vocabulary=graph.subset,
    )
    graph.output(logits, "logits", [OUTPUTS, graph.subset])
    graph.output(row_states, "row_states", [ROWS, h])
    graph.output(new_keys, "present_keys.0", key_shape, _HALF)
    graph.output(new_values, "present_values.0", value_shape, _HALF)
    (rows,) = graph.node("Cast", [given["output_rows"]], to=ir.DataType.INT64.value)
    (chosen,) = graph.node("Gather", [row_states, rows], axis=0)
    graph.uncertainty(graph.norm(chosen, "output_norm"), OUTPUTS)


def _parallel_heads(graph: _Graph) -> None:
    depths = int(graph.draft["parallel"])
    embedded = graph.input("embedded", _FLOAT, [1, graph.hidden])
    features = graph.input("features", _FLOAT, [1, graph.features])
    z = graph.folded(embedded, graph.linear(features, "fuse"))
    states: list[ir.Value] = []
    for depth in range(depths):
        own = graph.linear(z, f"parallel.{depth}")
        (gate,) = graph.node("Sigmoid", [own])
        (activated,) = graph.node("Mul", [own, gate])
        states += graph.node("Add", [z, activated])
    (all_depths,) = graph.node("Concat", states, axis=0)
    normed = graph.norm(all_depths, "output_norm")
    graph.output(graph.linear(normed, "head"), "logits", [depths, graph.subset])
    graph.uncertainty(normed, depths)
