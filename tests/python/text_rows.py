"""The rows of a text read from its beginning, each token in the slot of its position."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


def text_rows(tokens: Sequence[int]) -> dict[str, Any]:
    """What ``Model.forward`` takes for all of them in one pass, with every row's logits."""
    rows = list(range(len(tokens)))
    return {
        "tokens": list(tokens),
        "positions": rows,
        "slots": rows,
        "context_slots": [],
        "path_slots": rows,
        "path_begin": [0] * len(rows),
        "path_end": [row + 1 for row in rows],
        "output_rows": rows,
    }
