"""What ``sapwood bench draft`` makes of comparisons: acceptance by depth, coverage, calibration."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import Any, Protocol

BINS = 10  # of predicted uncertainty, of equal width


class Comparison(Protocol):
    """A ``_runtime.DraftComparison``."""

    @property
    def position(self) -> int: ...
    @property
    def depth(self) -> int: ...
    @property
    def same_top(self) -> bool: ...
    @property
    def covered(self) -> bool: ...
    @property
    def overlap(self) -> float: ...
    @property
    def entropy(self) -> float: ...
    @property
    def uncertainty(self) -> float | None: ...


@dataclass(frozen=True)
class Bin:
    """Predictions between two tenths, and what came."""

    count: int
    predicted: float
    seen: float  # 1 - sum of min(p, q)


def by_depth(rows: Sequence[Comparison]) -> list[dict[str, Any]]:
    """Means by depth, all tokens before taken as right. Greedy: the likeliest token is the same;
    ``greedy_after_right``, of those whose guesses at all depths before were the text's too."""
    right = {(row.position, row.depth) for row in rows if row.same_top}

    def path_right(row: Comparison) -> bool:
        return all((row.position - back, row.depth - back) in right for back in range(1, row.depth))

    result = []
    for depth in sorted({row.depth for row in rows}):
        here = [row for row in rows if row.depth == depth]
        after = [row for row in here if path_right(row)]
        result.append(
            {
                "depth": depth,
                "rows": len(here),
                "greedy": fmean(row.same_top for row in here),
                "greedy_after_right": fmean(row.same_top for row in after) if after else None,
                "sampled": fmean(row.overlap for row in here),
            }
        )
    return result


def chain_length(rows: Sequence[Comparison]) -> float:
    """Tokens a step, the target's own included, of greedy chains as deep as there are depths, from
    every position alike."""
    right = {(row.position, row.depth) for row in rows if row.same_top}
    starts = [row.position for row in rows if row.depth == 1]
    total = 0
    for start in starts:
        depth = 1
        while (start + depth - 1, depth) in right:
            depth += 1
        total += depth
    return total / len(starts)


def calibration(rows: Iterable[Comparison]) -> dict[str, Any] | None:
    """Expected calibration error of the uncertainty network: the mean, over bins of its
    predictions weighted by their size, of how far the prediction is from what came (Naeini et al.,
    2015). None without a network."""
    pairs = [(row.uncertainty, 1 - row.overlap) for row in rows if row.uncertainty is not None]
    if not pairs:
        return None
    bins = []
    for number in range(BINS):
        inside = [pair for pair in pairs if min(int(pair[0] * BINS), BINS - 1) == number]
        if inside:
            predicted, seen = (fmean(side) for side in zip(*inside, strict=True))
            bins.append(Bin(len(inside), predicted, seen))
    error = sum(each.count * abs(each.predicted - each.seen) for each in bins) / len(pairs)
    return {
        "rows": len(pairs),
        "expected_calibration_error": error,
        "bins": [vars(each) for each in bins],
    }


def summary(rows: Sequence[Comparison]) -> dict[str, Any]:
    """The figures of a category, or of all."""
    first = [row for row in rows if row.depth == 1]
    return {
        "tokens": len(first),
        "covered": fmean(row.covered for row in first),
        "chain_tokens_a_step": chain_length(rows),
        "by_depth": by_depth(rows),
    }
