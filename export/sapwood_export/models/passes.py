"""Builds the index arrays of a pass: a run of tokens, or the nodes of a tree, after a prefix.

The same arrays feed the torch decoder, both ONNX graphs and the runtime. Example, a root in slot 7
after seven committed tokens, with two children::

    tree_pass(tokens=[t, a, b], parents=[-1, 0, 0], context_slots=range(7), free_slots=range(7, 10))
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np
from numpy.typing import NDArray

Index = NDArray[np.int32]


@dataclass(frozen=True)
class PassArrays:
    """The seven int32 inputs of a pass; see ``RowBatch`` in the runtime for what each one means."""

    token_ids: Index  # [R]
    positions: Index  # [R]
    slots: Index  # [R]
    context_slots: Index  # [C]
    path_slots: Index  # [P]
    path_ranges: Index  # [R, 2]
    output_rows: Index  # [O]

    def named(self) -> dict[str, Index]:
        """The arrays by the name of their graph input."""
        return {field.name: getattr(self, field.name) for field in fields(self)}


def _index(values: Sequence[int] | range) -> Index:
    return np.asarray(values, dtype=np.int32).reshape(-1)


def chain_pass(
    tokens: Sequence[int],
    context_slots: Sequence[int] | range,
    slots: Sequence[int] | range,
    output_rows: Sequence[int] | range | None = None,
) -> PassArrays:
    """Tokens one after the other, each seeing the context and those before it: a prompt."""
    rows, context = len(tokens), len(context_slots)
    ends = np.arange(1, rows + 1, dtype=np.int32)
    return PassArrays(
        token_ids=_index(tokens),
        positions=np.arange(context, context + rows, dtype=np.int32),
        slots=_index(slots),
        context_slots=_index(context_slots),
        path_slots=_index(slots),
        path_ranges=np.stack((np.zeros_like(ends), ends), axis=1),
        output_rows=_index(range(rows) if output_rows is None else output_rows),
    )


def tree_pass(
    tokens: Sequence[int],
    parents: Sequence[int],
    context_slots: Sequence[int] | range,
    free_slots: Sequence[int] | range,
) -> PassArrays:
    """The nodes of a tree, each seeing the context and its ancestors; all rows give logits.

    ``parents[i] < i``, or -1 for a node that follows the context directly.
    """
    paths: list[list[int]] = []
    for node, parent in enumerate(parents):
        if not -1 <= parent < node:
            raise ValueError(f"node {node} has parent {parent}, which does not come before it")
        paths.append(([] if parent < 0 else paths[parent]) + [free_slots[node]])
    ends = np.cumsum([len(path) for path in paths], dtype=np.int32)
    begins = ends - np.asarray([len(path) for path in paths], dtype=np.int32)
    positions = [len(context_slots) + len(path) - 1 for path in paths]
    return PassArrays(
        token_ids=_index(tokens),
        positions=_index(positions),
        slots=_index([path[-1] for path in paths]),
        context_slots=_index(context_slots),
        path_slots=_index([slot for path in paths for slot in path]),
        path_ranges=np.stack((begins, ends), axis=1),
        output_rows=_index(range(len(tokens))),
    )
