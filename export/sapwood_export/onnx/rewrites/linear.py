"""quantized-linear: x @ weight^T becomes QuantizedLinear over the weight's packed bytes."""

from __future__ import annotations

from sapwood_export.onnx.pattern import Any, find, op
from sapwood_export.onnx.rewrites.workpiece import Rewrite, Workpiece, linear_attributes

PATTERN = op("MatMul", Any("x"), op("Transpose", Any("weight"), perm=[1, 0]))


def _apply(work: Workpiece) -> int:
    count = 0
    for match in find(work.graph, PATTERN):
        packed = work.packed_input(match.value("weight"))
        if packed is None:  # attention multiplies by a transposed cache, which is no weight
            continue
        last = match.nodes[PATTERN]
        inputs = [match.value("x"), packed[0]]
        work.substitute(last, "QuantizedLinear", inputs, linear_attributes(packed[1]))
        count += 1
    return count


REWRITE = Rewrite("quantized-linear", lambda spec: 4 * spec.layers + 1, _apply)
