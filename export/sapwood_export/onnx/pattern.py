"""Finds a shape of nodes in a graph, walking back from its last value.

A pattern is an expression over nodes, written once and used for any number of matches::

    x, weight, epsilon = Any("x"), Any("weight"), Number("epsilon")
    mean = op("ReduceMean", op("Mul", x, x), Number(-1))
    normed = op("Mul", op("Mul", x, op("Reciprocal", op("Sqrt", op("Add", mean, epsilon)))), weight)

A part that occurs twice must be the same value both times; the two inputs of a commutative operator
may stand in either order; attributes that are not named may have any value. Values inside a match
may be used elsewhere too: a rewrite replaces outputs and leaves dead nodes to the clean-up.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any as Anything

import numpy as np
import onnx_ir as ir

COMMUTATIVE = {"Add", "Mul", "And"}


class Pattern:
    """Anything that can stand for a value."""


@dataclass(frozen=True, eq=False)
class Any(Pattern):
    """Any value; the same one wherever this name occurs."""

    name: str


@dataclass(frozen=True, eq=False)
class Number(Pattern):
    """A constant: one number or array that must equal ``expected``, or any number, kept by name."""

    expected: float | Sequence[int] | None = None
    name: str = ""


@dataclass(frozen=True, eq=False)
class Node(Pattern):
    """An operator over patterns; stands for its first output."""

    op_type: str
    inputs: tuple[Pattern, ...]
    attributes: dict[str, Anything]
    domain: str = ""

    def output(self, index: int) -> Output:
        """Another of its outputs."""
        return Output(self, index)


@dataclass(frozen=True, eq=False)
class Output(Pattern):
    """One output of a node."""

    node: Node
    index: int


def op(op_type: str, *inputs: Pattern, domain: str = "", **attributes: Anything) -> Node:
    """A node of this type, over these inputs, with at least these attributes."""
    return Node(op_type, inputs, attributes, domain)


@dataclass
class Match:
    """What a pattern's parts turned out to be."""

    values: dict[str, ir.Value] = field(default_factory=dict)
    numbers: dict[str, float] = field(default_factory=dict)
    nodes: dict[Pattern, ir.Node] = field(default_factory=dict)

    def value(self, part: str | Node | Output) -> ir.Value:
        """The value that a name, a node or one of its outputs stands for."""
        if isinstance(part, str):
            return self.values[part]
        if isinstance(part, Node):
            return self.nodes[part].outputs[0]
        return self.nodes[part.node].outputs[part.index]

    def attribute(self, part: Node, name: str) -> Anything:
        """An attribute of a matched node."""
        return self.nodes[part].attributes[name].value

    def _copy(self) -> Match:
        return Match(dict(self.values), dict(self.numbers), dict(self.nodes))


def find(graph: ir.Graph, pattern: Node) -> Iterator[Match]:
    """All matches, in graph order. The graph may be changed between them."""
    for node in list(graph):
        if node.graph is None or not _is_used(node):
            continue
        match = match_value(pattern, node.outputs[0])
        if match is not None:
            yield match


def match_value(pattern: Pattern, value: ir.Value | None) -> Match | None:
    """The first way in which ``value`` has the pattern's shape, or None."""
    return next(_matches(pattern, value, Match()), None)


def _is_used(node: ir.Node) -> bool:
    return any(value.uses() or value.is_graph_output() for value in node.outputs)


def _matches(pattern: Pattern, value: ir.Value | None, match: Match) -> Iterator[Match]:
    if value is None:
        return
    if isinstance(pattern, Any):
        bound = match.values.get(pattern.name)
        if bound is None:
            match = match._copy()
            match.values[pattern.name] = value
            yield match
        elif bound is value:
            yield match
    elif isinstance(pattern, Number):
        yield from _number_matches(pattern, value, match)
    elif isinstance(pattern, Output):
        yield from _node_matches(pattern.node, pattern.index, value, match)
    elif isinstance(pattern, Node):
        yield from _node_matches(pattern, 0, value, match)


def constant(value: ir.Value) -> np.ndarray[Anything, Anything] | None:
    """The array of a constant value, or None."""
    tensor = ir.convenience.get_const_tensor(value)
    return None if tensor is None else tensor.numpy()


def _number_matches(pattern: Number, value: ir.Value, match: Match) -> Iterator[Match]:
    array = constant(value)
    if array is None:
        return
    if pattern.expected is not None:
        if array.reshape(-1).tolist() == np.asarray(pattern.expected).reshape(-1).tolist():
            yield match
    elif array.size == 1:
        number = float(array.reshape(()))
        bound = match.numbers.get(pattern.name)
        if bound is None:
            match = match._copy()
            match.numbers[pattern.name] = number
            yield match
        elif bound == number:
            yield match


def _node_matches(pattern: Node, index: int, value: ir.Value, match: Match) -> Iterator[Match]:
    node = value.producer()
    if node is None or value.index() != index:
        return
    if pattern in match.nodes:
        if match.nodes[pattern] is node:
            yield match
        return
    if node.op_type != pattern.op_type or node.domain != pattern.domain:
        return
    for name, expected in pattern.attributes.items():
        attribute = node.attributes.get(name)
        if attribute is None or not _same(attribute.value, expected):
            return
    if len(node.inputs) < len(pattern.inputs):
        return
    match = match._copy()
    match.nodes[pattern] = node
    orders = [tuple(node.inputs)]
    if pattern.op_type in COMMUTATIVE and len(node.inputs) == 2:
        orders.append((node.inputs[1], node.inputs[0]))
    for order in orders:
        yield from _inputs_match(pattern.inputs, order, match)


def _inputs_match(
    patterns: Sequence[Pattern], values: Sequence[ir.Value | None], match: Match
) -> Iterator[Match]:
    if not patterns:
        yield match
        return
    for partial in _matches(patterns[0], values[0], match):
        yield from _inputs_match(patterns[1:], values[1:], partial)


def _same(actual: Anything, expected: Anything) -> bool:
    if isinstance(expected, list | tuple):
        return list(actual) == list(expected)
    return bool(actual == expected)
