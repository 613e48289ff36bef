"""rotary-table and rotary-embedding: angles become RotaryTable, rotated heads RotaryEmbedding."""

from __future__ import annotations

import onnx_ir as ir

from sapwood_export.onnx.pattern import Any, Number, find, op
from sapwood_export.onnx.rewrites.workpiece import Rewrite, Workpiece
from sapwood_export.spec import ModelSpec

_POSITIONS, _FREQUENCIES = Any("positions"), Any("inverse_frequencies")
_ANGLES = op(
    "Mul",
    op("Unsqueeze", op("Cast", _POSITIONS, to=ir.DataType.DOUBLE.value), Number(-1)),
    op("Cast", _FREQUENCIES, to=ir.DataType.DOUBLE.value),
)
TABLE = op(
    "Cast",
    op("Concat", op("Cos", _ANGLES), op("Sin", _ANGLES), axis=-1),
    to=ir.DataType.FLOAT.value,
)

_HALVES = op("Split", Any("x"), axis=2)
_FIRST, _SECOND = _HALVES.output(0), _HALVES.output(1)
_TURN = op("Split", op("Unsqueeze", Any("rotary"), Number(1)), axis=2)
_COS, _SIN = _TURN.output(0), _TURN.output(1)
EMBEDDING = op(
    "Concat",
    op("Sub", op("Mul", _FIRST, _COS), op("Mul", _SECOND, _SIN)),
    op("Add", op("Mul", _SECOND, _COS), op("Mul", _FIRST, _SIN)),
    axis=-1,
)


def _table_matches(spec: ModelSpec) -> int:
    return 2 if any(spec.layer_is_sliding) else 1


def _apply_table(work: Workpiece) -> int:
    count = 0
    for match in find(work.graph, TABLE):
        last = match.nodes[TABLE]
        inputs = [match.value("positions"), match.value("inverse_frequencies")]
        work.substitute(last, "RotaryTable", inputs, {})
        count += 1
    return count


def _apply_embedding(work: Workpiece) -> int:
    count = 0
    for match in find(work.graph, EMBEDDING):
        last = match.nodes[EMBEDDING]
        work.substitute(last, "RotaryEmbedding", [match.value("x"), match.value("rotary")], {})
        count += 1
    return count


ROTARY_TABLE = Rewrite("rotary-table", _table_matches, _apply_table)
ROTARY_EMBEDDING = Rewrite("rotary-embedding", lambda spec: 2 * spec.layers, _apply_embedding)
