"""What the data of a distillation is made of, counted from the shards themselves."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sapwood_export.distill.shards import Shard


@dataclass
class Tally:
    """Texts and tokens by category and by temperature."""

    shards: int = 0
    tokens: int = 0
    written: int = 0  # of them, from where the target began to write
    texts: int = 0
    duplicates: int = 0  # texts left out
    looped: int = 0  # answers cut where they went round in circles
    categories: dict[int, Counter[str]] = field(default_factory=dict)
    temperatures: dict[float, Counter[str]] = field(default_factory=dict)

    def add(self, shard: Shard) -> None:
        """Counts a finished shard."""
        lengths = np.diff(shard.offsets)
        self.shards += 1
        self.tokens += int(lengths.sum())
        self.written += int((lengths - shard.start).sum())
        self.texts += len(lengths)
        for length, category, temperature in zip(
            lengths, shard.category, shard.temperature, strict=True
        ):
            counted = Counter(texts=1, tokens=int(length))
            self.categories.setdefault(int(category), Counter()).update(counted)
            self.temperatures.setdefault(round(float(temperature), 3), Counter()).update(counted)

    def report(self, categories: Sequence[str]) -> dict[str, Any]:
        """As data.json has it."""
        return {
            "shards": self.shards,
            "texts": self.texts,
            "tokens": self.tokens,
            "tokens_written_by_target": self.written,
            "duplicates_left_out": self.duplicates,
            "looped_answers_cut": self.looped,
            "mix": {
                categories[category]: dict(counted)
                for category, counted in sorted(self.categories.items())
            },
            "temperatures": {
                str(temperature): dict(counted)
                for temperature, counted in sorted(self.temperatures.items())
            },
        }


def opening_of(
    tokens: NDArray[np.int32], start: int, free: bool, end_tokens: Iterable[int]
) -> bytes:
    """What makes texts duplicates: the prompt, or, where the target wrote that too, its turn."""
    if not free:
        return tokens[:start].tobytes()
    ends = np.flatnonzero(np.isin(tokens[start:], list(end_tokens)))
    return tokens[: start + int(ends[0]) if len(ends) else None].tobytes()
