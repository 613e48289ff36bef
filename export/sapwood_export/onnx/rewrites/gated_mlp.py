"""gated-mlp: QuantizedLinear, panels taken apart, activation(gate) * up become GatedLinear.

Runs after quantized-linear.
"""

from __future__ import annotations

from sapwood_export.onnx.pattern import Any, Node, Number, find, op
from sapwood_export.onnx.rewrites.workpiece import DOMAIN, Rewrite, Workpiece
from sapwood_export.spec import PANEL, ModelSpec

LINEAR = op("QuantizedLinear", Any("x"), Any("gate_up"), domain=DOMAIN)


def _pattern(spec: ModelSpec) -> Node:
    units = spec.intermediate_size
    panels = op("Reshape", LINEAR, Number((-1, units // PANEL, 2, PANEL)))
    gate = op("Reshape", op("Gather", panels, Number(0), axis=2), Number((-1, units)))
    up = op("Reshape", op("Gather", panels, Number(1), axis=2), Number((-1, units)))
    if spec.activation == "silu":
        activated = op("Mul", gate, op("Sigmoid", gate))
    else:
        activated = op("Gelu", gate, approximate="tanh")
    return op("Mul", activated, up)


def _apply(work: Workpiece) -> int:
    pattern = _pattern(work.spec)
    count = 0
    for match in find(work.graph, pattern):
        last = match.nodes[pattern]
        attributes = {
            "format": match.attribute(LINEAR, "format"),
            "intermediate": work.spec.intermediate_size,
            "inputs": match.attribute(LINEAR, "inputs"),
            "activation": work.spec.activation,
        }
        inputs = [match.value("x"), match.value("gate_up")]
        work.substitute(last, "GatedLinear", inputs, attributes)
        count += 1
    return count


REWRITE = Rewrite("gated-mlp", lambda spec: spec.layers, _apply)
