"""output-head: rows gathered, RmsNorm, QuantizedLinear become OutputHead.

Runs after rms-norm and quantized-linear.
"""

from __future__ import annotations

import onnx_ir as ir

from sapwood_export.onnx.pattern import Any, find, op
from sapwood_export.onnx.rewrites.workpiece import DOMAIN, Rewrite, Workpiece

_ROWS = op("Cast", Any("output_rows"), to=ir.DataType.INT64.value)
_NORM = op("RmsNorm", op("Gather", Any("hidden"), _ROWS, axis=0), Any("norm"), domain=DOMAIN)
PATTERN = op("QuantizedLinear", _NORM, Any("head"), domain=DOMAIN)


def _apply(work: Workpiece) -> int:
    count = 0
    for match in find(work.graph, PATTERN):
        last = match.nodes[PATTERN]
        inputs = [match.value(name) for name in ("hidden", "output_rows", "norm", "head")]
        attributes = {
            "format": match.attribute(PATTERN, "format"),
            "norm_epsilon": match.attribute(_NORM, "epsilon"),
            "vocabulary": match.attribute(PATTERN, "outputs"),
        }
        work.substitute(last, "OutputHead", inputs, attributes)
        count += 1
    return count


REWRITE = Rewrite("output-head", lambda spec: 1, _apply)
