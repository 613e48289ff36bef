"""The matcher behind the rewrites, on graphs of a few nodes."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any as Anything

import numpy as np
import pytest

ir = pytest.importorskip("onnx_ir")

from sapwood_export.onnx.pattern import Any, Number, find, match_value, op  # noqa: E402


class Graph:
    """A graph under construction; ``node`` returns the new node's outputs."""

    def __init__(self) -> None:
        self.graph = ir.Graph([], [], nodes=[], opset_imports={"": 20}, name="test")

    def input(self, name: str) -> Anything:
        value = ir.Value(name=name)
        self.graph.inputs.append(value)
        return value

    def constant(self, *numbers: float) -> Anything:
        name = f"constant{len(self.graph.initializers)}"
        tensor = ir.tensor(np.asarray(numbers, np.float32), name=name)
        value = ir.Value(name=name, const_value=tensor)
        self.graph.register_initializer(value)
        return value

    def node(
        self, op_type: str, inputs: Sequence[Anything], outputs: int = 1, **attributes: Anything
    ) -> Anything:
        node = ir.node(op_type, inputs, attributes, num_outputs=outputs)
        self.graph.append(node)
        return node.outputs[0] if outputs == 1 else node.outputs


SQUARE = op("Mul", Any("x"), Any("x"))


def test_a_name_that_occurs_twice_must_be_one_value() -> None:
    graph = Graph()
    a, b = graph.input("a"), graph.input("b")
    assert match_value(SQUARE, graph.node("Mul", [a, a])) is not None
    assert match_value(SQUARE, graph.node("Mul", [a, b])) is None


def test_a_sum_matches_in_either_order_and_a_difference_does_not() -> None:
    graph = Graph()
    a, b = graph.input("a"), graph.input("b")
    root = graph.node("Sqrt", [a])
    added = op("Add", op("Sqrt", Any("a")), Any("b"))
    taken = op("Sub", op("Sqrt", Any("a")), Any("b"))
    match = match_value(added, graph.node("Add", [b, root]))
    assert match is not None
    assert match.value("a") is a
    assert match.value("b") is b
    assert match_value(taken, graph.node("Sub", [b, root])) is None


def test_a_wrong_first_order_is_taken_back() -> None:
    # x * y with x bound by the first factor, of which only the second order fits the outer sum.
    graph = Graph()
    a, b = graph.input("a"), graph.input("b")
    pattern = op("Add", op("Mul", Any("x"), Any("y")), op("Sqrt", Any("x")))
    total = graph.node("Add", [graph.node("Mul", [a, b]), graph.node("Sqrt", [b])])
    match = match_value(pattern, total)
    assert match is not None
    assert match.value("x") is b


def test_numbers_are_compared_or_kept() -> None:
    graph = Graph()
    a = graph.input("a")
    value = graph.node("Mul", [a, graph.constant(0.25)])
    assert match_value(op("Mul", Any("x"), Number(0.5)), value) is None
    assert match_value(op("Mul", Any("x"), Number(0.25)), value) is not None
    match = match_value(op("Mul", Any("x"), Number(name="scale")), value)
    assert match is not None
    assert match.numbers == {"scale": 0.25}


def test_a_value_that_is_no_constant_is_no_number() -> None:
    graph = Graph()
    value = graph.node("Mul", [graph.input("a"), graph.input("b")])
    assert match_value(op("Mul", Any("x"), Number(name="scale")), value) is None


def test_attributes_that_are_named_must_agree() -> None:
    graph = Graph()
    value = graph.node("Transpose", [graph.input("a")], perm=[1, 0])
    assert match_value(op("Transpose", Any("x"), perm=[1, 0]), value) is not None
    assert match_value(op("Transpose", Any("x"), perm=[0, 1]), value) is None
    assert match_value(op("Transpose", Any("x"), other=1), value) is None


def test_outputs_of_one_node_must_come_from_one_node() -> None:
    graph = Graph()
    a = graph.input("a")
    first = graph.node("Split", [a], outputs=2, axis=1)
    second = graph.node("Split", [a], outputs=2, axis=1)
    split = op("Split", Any("x"))
    pattern = op("Sub", split.output(1), split.output(0))
    assert match_value(pattern, graph.node("Sub", [first[1], first[0]])) is not None
    assert match_value(pattern, graph.node("Sub", [first[0], first[1]])) is None
    assert match_value(pattern, graph.node("Sub", [first[1], second[0]])) is None


def test_nodes_that_nothing_uses_are_not_found() -> None:
    graph = Graph()
    a = graph.input("a")
    graph.node("Mul", [a, a])
    used = graph.node("Mul", [a, a])
    graph.graph.outputs.append(graph.node("Sqrt", [used]))
    assert [match.value(SQUARE) for match in find(graph.graph, SQUARE)] == [used]
