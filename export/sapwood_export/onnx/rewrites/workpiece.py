"""What a rewrite is, and the graph it works on."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import onnx_ir as ir
from onnx_ir.passes.common import RemoveUnusedNodesPass

from sapwood_export.quantize.formats import linear_format
from sapwood_export.spec import ModelSpec

DOMAIN = "com.endpoint.ai"
DOMAIN_VERSION = 1
PACKED = ".packed"  # after a weight's name: its packed bytes instead of its numbers


@dataclass(frozen=True)
class PackedWeight:
    """How a weight lies in the bundle."""

    form: str
    outputs: int
    inputs: int
    bytes: int


@dataclass
class Workpiece:
    """A graph whose weights are inputs, and what the rewrites need to know about them."""

    model: ir.Model
    spec: ModelSpec
    packed: Mapping[str, PackedWeight]  # by name, those that are quantised
    _inputs: dict[str, ir.Value] = field(init=False)

    def __post_init__(self) -> None:
        self._inputs = {str(value.name): value for value in self.graph.inputs}
        self.graph.opset_imports[DOMAIN] = DOMAIN_VERSION

    @property
    def graph(self) -> ir.Graph:
        return self.model.graph

    def input(self, name: str) -> ir.Value:
        """A graph input by its name."""
        return self._inputs[name]

    def packed_input(self, weight: ir.Value) -> tuple[ir.Value, PackedWeight] | None:
        """The packed bytes of a weight, as a graph input; None if it has none."""
        name = str(weight.name)
        known = self.packed.get(name)
        if known is None or self._inputs.get(name) is not weight:
            return None
        value = self._inputs.get(name + PACKED)
        if value is None:
            value = self.add_input(name + PACKED, ir.DataType.UINT8, [known.bytes])
        return value, known

    def packed_weight(self, value: ir.Value) -> PackedWeight:
        """What the packed input ``value`` holds."""
        return self.packed[str(value.name).removesuffix(PACKED)]

    def add_input(self, name: str, dtype: ir.DataType, shape: Sequence[int | str]) -> ir.Value:
        """A new graph input."""
        value = ir.Value(name=name, type=ir.TensorType(dtype), shape=ir.Shape(shape))
        self.graph.inputs.append(value)
        self._inputs[name] = value
        return value

    def node(
        self,
        before: ir.Node,
        op_type: str,
        inputs: Sequence[ir.Value | None],
        attributes: Mapping[str, Any],
        outputs: Sequence[ir.Value],
        domain: str = DOMAIN,
    ) -> ir.Node:
        """Puts a new node in front of another."""
        node = ir.Node(
            domain,
            op_type,
            inputs,
            ir.convenience.convert_attributes(attributes),
            outputs=outputs,
            name=f"{outputs[0].name}/{op_type}",
        )
        self.graph.insert_before(before, node)
        return node

    def replace(self, old: ir.Value, dtype: ir.DataType | None = None) -> ir.Value:
        """A value for a new node's output that takes the name, place and shape of ``old``."""
        kind = old.type if dtype is None else ir.TensorType(dtype)
        new = ir.Value(name=old.name, type=kind, shape=old.shape)
        old.name = f"{old.name}/replaced"
        ir.convenience.replace_all_uses_with(old, new, replace_graph_outputs=True)
        return new

    def substitute(
        self,
        last: ir.Node,
        op_type: str,
        inputs: Sequence[ir.Value | None],
        attributes: Mapping[str, Any],
    ) -> ir.Node:
        """Puts one of our operators in the place of ``last``, the end of a matched pattern."""
        outputs = [self.replace(value) for value in last.outputs]
        return self.node(last, op_type, inputs, attributes, outputs)

    def convert(
        self,
        before: ir.Node,
        value: ir.Value,
        steps: Sequence[tuple[str, Any]],
        result: ir.Value | None = None,
    ) -> ir.Value:
        """A chain of standard nodes over ``value``: ("Cast", type), ("Reshape", shape) and
        ("Transpose", permutation). Its end is ``result``, if that is given."""
        for step, (op_type, argument) in enumerate(steps):
            is_last = step == len(steps) - 1
            output = ir.Value(name=f"{value.name}/{op_type}")
            if is_last and result is not None:
                output = result
            inputs, attributes = [value], {}
            if op_type == "Cast":
                attributes = {"to": argument.value}
                output.type = ir.TensorType(argument)
            elif op_type == "Transpose":
                attributes = {"perm": argument}
            else:
                inputs.append(self.constant(f"{output.name}/shape", argument))
            self.node(before, op_type, inputs, attributes, [output], domain="")
            value = output
        return value

    def constant(self, name: str, values: Sequence[int]) -> ir.Value:
        """An int64 initialiser."""
        tensor = ir.tensor(np.asarray(values, dtype=np.int64), name=name)
        value = ir.Value(
            name=name,
            type=ir.TensorType(tensor.dtype),
            shape=ir.Shape([len(values)]),
            const_value=tensor,
        )
        self.graph.register_initializer(value)
        return value

    def clean_up(self) -> None:
        """Drops nodes and weights that nothing uses any more, and restores the order of nodes."""
        RemoveUnusedNodesPass()(self.model)
        for value in list(self.graph.inputs):
            name = str(value.name)
            is_weight = name in self.packed or name.endswith(PACKED)
            if is_weight and not value.uses():
                self.graph.inputs.remove(value)
                del self._inputs[name]
        self.graph.sort()


@dataclass(frozen=True)
class Rewrite:
    """One step of the surgery: what it is called, how often it must match, and how it is done."""

    name: str
    matches: Callable[[ModelSpec], int]  # how many places a decoder of this spec has
    apply: Callable[[Workpiece], int]  # rewrites all it finds; returns how many that were


def linear_attributes(weight: PackedWeight) -> dict[str, Any]:
    """The attributes that describe a packed weight to QuantizedLinear."""
    linear_format(weight.form)  # an operator attribute must be a name that the kernels know
    return {"format": weight.form, "outputs": weight.outputs, "inputs": weight.inputs}
