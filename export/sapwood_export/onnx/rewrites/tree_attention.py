"""tree-attention: cache writes, mask and attention of a layer become TreeAttention.

The operator's caches are float16 and its keys lie in tiles; conversions around it keep the graph's
own inputs and outputs as they were (the kv-layout rewrite then takes them away).
"""

from __future__ import annotations

import onnx_ir as ir

from sapwood_export.onnx.pattern import Any, Match, Node, Number, Pattern, find, match_value, op
from sapwood_export.onnx.rewrites.workpiece import Rewrite, Workpiece
from sapwood_export.operators.reference import KEY_TILE
from sapwood_export.spec import ModelSpec

_INT64 = ir.DataType.INT64.value
_CONTEXT, _PATHS, _RANGES = Any("context_slots"), Any("path_slots"), Any("path_ranges")
_POSITIONS = Any("positions")

_Q, _K, _V, _SLOTS = Any("q"), Any("k"), Any("v"), Any("slots")
_PAST_KEYS, _PAST_VALUES = Any("past_keys"), Any("past_values")
_GATHERED = op("Cast", op("Concat", _CONTEXT, _PATHS, axis=0), to=_INT64)


def _stored(past: Pattern, rows: Pattern, index: Pattern) -> Node:
    by_head = op("Transpose", rows, perm=[1, 0, 2])
    return op("ScatterElements", past, index, by_head, axis=1, reduction="none")


_INDEX = op("Expand", op("Reshape", op("Cast", _SLOTS, to=_INT64), Number((1, -1, 1))), Any("size"))
KEYS = _stored(_PAST_KEYS, _K, _INDEX)
VALUES = _stored(_PAST_VALUES, _V, _INDEX)


def _attention(spec: ModelSpec) -> Node:
    groups = spec.heads // spec.kv_heads
    grouped = op(
        "Transpose",
        op("Reshape", _Q, Number((-1, spec.kv_heads, groups, spec.head_dim))),
        perm=[1, 2, 0, 3],
    )
    keys = op("Unsqueeze", op("Gather", KEYS, _GATHERED, axis=1), Number(1))
    values = op("Unsqueeze", op("Gather", VALUES, _GATHERED, axis=1), Number(1))
    scores = op("MatMul", grouped, op("Transpose", keys, perm=[0, 1, 3, 2]))
    masked = op(
        "Where", Any("visible"), op("Mul", scores, Number(name="scale")), Number(float("-inf"))
    )
    mixed = op("MatMul", op("Softmax", masked, axis=-1), values)
    rows_first = op("Transpose", mixed, perm=[2, 0, 1, 3])
    return op("Reshape", rows_first, Number((-1, spec.heads * spec.head_dim)))


def _edge(index: int) -> Node:
    """One column of path_ranges: 0 where the paths begin, 1 where they end."""
    bounds = (Number(0), Any("begin_end")) if index == 0 else (Number(1), Any("end_end"))
    return op("Slice", _RANGES, *bounds, Number(1), Number(1))


_BEGIN, _END = _edge(0), _edge(1)


def _count_up(name: str, begin: Pattern) -> Node:
    return op("Unsqueeze", op("Range", Number(0), begin, Number(1)), Number(0))


_COLUMN = _count_up("column", Any("path_length"))
_ON_PATH = op("And", op("GreaterOrEqual", _COLUMN, _BEGIN), op("Less", _COLUMN, _END))
_IN_CONTEXT = op("Expand", op("Expand", Number(1), Any("rows")), Any("context_size"))
VISIBLE = op("Concat", _IN_CONTEXT, _ON_PATH, axis=1)
_CONTEXT_LENGTH = Any("context_length")
_SEEN_POSITIONS = op(
    "Concat",
    op("Expand", _count_up("context", _CONTEXT_LENGTH), Any("context_positions_size")),
    op("Add", op("Sub", _COLUMN, _BEGIN), _CONTEXT_LENGTH),
    axis=1,
)
_FLOOR = op("Sub", op("Unsqueeze", _POSITIONS, Number(-1)), Number(name="window"))
VISIBLE_IN_WINDOW = op("And", VISIBLE, op("Greater", _SEEN_POSITIONS, _FLOOR))


def _window(work: Workpiece, visible: ir.Value) -> int | None:
    """The window that a mask means, 0 for none; None if it is not a mask of the pass's inputs."""
    sliding = match_value(VISIBLE_IN_WINDOW, visible)
    match = sliding or match_value(VISIBLE, visible)
    if match is None or not _are_inputs(work, match, ["path_ranges"]):
        return None
    if sliding is None:
        return 0
    return int(sliding.numbers["window"]) if _are_inputs(work, sliding, ["positions"]) else None


def _are_inputs(work: Workpiece, match: Match, names: list[str]) -> bool:
    """Whether each of these values is the graph input of the same name."""
    return all(match.value(name) is work.input(name) for name in names)


def _apply(work: Workpiece) -> int:
    pattern = _attention(work.spec)
    count = 0
    for match in find(work.graph, pattern):
        window = _window(work, match.value("visible"))
        if window is None or not _are_inputs(work, match, ["slots", "context_slots", "path_slots"]):
            continue
        _substitute(work, match, pattern, window)
        count += 1
    return count


def _substitute(work: Workpiece, match: Match, pattern: Node, window: int) -> None:
    spec, last = work.spec, match.nodes[pattern]
    half, full = ir.DataType.FLOAT16, ir.DataType.FLOAT
    tiles = [spec.kv_heads, -1, KEY_TILE, spec.head_dim]
    plain = [spec.kv_heads, -1, spec.head_dim]

    to_tiles = [("Cast", half), ("Reshape", tiles), ("Transpose", [0, 1, 3, 2])]
    past_keys = work.convert(last, match.value("past_keys"), to_tiles)
    past_values = work.convert(last, match.value("past_values"), [("Cast", half)])

    mixed = work.replace(match.value(pattern))
    keys, values = work.replace(match.value(KEYS)), work.replace(match.value(VALUES))
    fused_keys = ir.Value(name=f"{keys.name}/tiles", type=ir.TensorType(half))
    fused_values = ir.Value(name=f"{values.name}/half", type=ir.TensorType(half))
    inputs = [match.value(name) for name in ("q", "k", "v", "slots", "context_slots", "path_slots")]
    inputs += [work.input("path_ranges"), past_keys, past_values]
    attributes = {"scale": match.numbers["scale"], "window": window}
    work.node(last, "TreeAttention", inputs, attributes, [mixed, fused_keys, fused_values])

    from_tiles = [("Transpose", [0, 1, 3, 2]), ("Reshape", plain), ("Cast", full)]
    work.convert(last, fused_keys, from_tiles, keys)
    work.convert(last, fused_values, [("Cast", full)], values)


REWRITE = Rewrite("tree-attention", lambda spec: spec.layers, _apply)
