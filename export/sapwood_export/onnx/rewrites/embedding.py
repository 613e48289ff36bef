"""token-embedding: a gathered, scaled row of the table becomes TokenEmbedding over packed bytes."""

from __future__ import annotations

from sapwood_export.onnx.pattern import Any, Node, Number, find, op
from sapwood_export.onnx.rewrites.workpiece import Rewrite, Workpiece
from sapwood_export.spec import ModelSpec


def _pattern(spec: ModelSpec) -> Node:
    row = op("Gather", Any("table"), Any("token_ids"), axis=0)
    return row if spec.embedding_scale == 1.0 else op("Mul", row, Number(name="scale"))


def _apply(work: Workpiece) -> int:
    pattern = _pattern(work.spec)
    count = 0
    for match in find(work.graph, pattern):
        packed = work.packed_input(match.value("table"))
        if packed is None:  # another gather: the rows whose logits are wanted
            continue
        value, weight = packed
        last = match.nodes[pattern]
        attributes = {
            "format": weight.form,
            "hidden": weight.inputs,
            "vocabulary": weight.outputs,
            "scale": match.numbers.get("scale", 1.0),
        }
        inputs = [match.value("token_ids"), value]
        work.substitute(last, "TokenEmbedding", inputs, attributes)
        count += 1
    return count


REWRITE = Rewrite("token-embedding", lambda spec: 1, _apply)
