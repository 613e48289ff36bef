"""rms-norm: x * 1/sqrt(mean(x^2) + epsilon) * weight becomes RmsNorm."""

from __future__ import annotations

from sapwood_export.onnx.pattern import Any, Number, find, op
from sapwood_export.onnx.rewrites.workpiece import Rewrite, Workpiece
from sapwood_export.spec import ModelSpec

_X, _WEIGHT = Any("x"), Any("weight")
_MEAN_SQUARE = op("ReduceMean", op("Mul", _X, _X), Number(-1), keepdims=1)
_ROOT = op("Sqrt", op("Add", _MEAN_SQUARE, Number(name="epsilon")))
PATTERN = op("Mul", op("Mul", _X, op("Reciprocal", _ROOT)), _WEIGHT)


def _matches(spec: ModelSpec) -> int:
    per_layer = 2 + (2 if spec.qk_norm else 0) + (2 if spec.post_norms else 0)
    return per_layer * spec.layers + 1


def _apply(work: Workpiece) -> int:
    count = 0
    for match in find(work.graph, PATTERN):
        last = match.nodes[PATTERN]
        inputs = [match.value("x"), match.value("weight")]
        attributes = {"epsilon": match.numbers["epsilon"]}
        work.substitute(last, "RmsNorm", inputs, attributes)
        count += 1
    return count


REWRITE = Rewrite("rms-norm", _matches, _apply)
