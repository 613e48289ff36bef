"""What ``sapwood bench draft`` makes of comparisons: acceptance by depth, coverage, calibration."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
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


# What was found of one text; of several.
Text = Sequence[Comparison]
Texts = Sequence[Text]


def by_depth(texts: Texts) -> list[dict[str, Any]]:
    """Means by depth, all tokens before taken as right. Greedy: the likeliest token is the same;
    ``greedy_after_right``, of those whose guesses at all depths before were the text's too."""
    result = []
    for depth in sorted({row.depth for text in texts for row in text}):
        here = [row for text in texts for row in text if row.depth == depth]
        after = [row for text in texts for row in _after_right(text, depth)]
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


def _right(text: Text) -> set[tuple[int, int]]:
    return {(row.position, row.depth) for row in text if row.same_top}


def _after_right(text: Text, depth: int) -> Iterator[Comparison]:
    right = _right(text)
    for row in text:
        above = ((row.position - back, depth - back) for back in range(1, depth))
        if row.depth == depth and all(guess in right for guess in above):
            yield row


def chain_length(texts: Texts) -> float:
    """Tokens a step, the target's own included, of greedy chains as deep as there are depths, from
    every position alike."""
    lengths = []
    for text in texts:
        right = _right(text)
        for start in (row.position for row in text if row.depth == 1):
            depth = 1
            while (start + depth - 1, depth) in right:
                depth += 1
            lengths.append(depth)
    return fmean(lengths)


def calibration(texts: Texts) -> dict[str, Any] | None:
    """Expected calibration error of the uncertainty network: the mean, over bins of its
    predictions weighted by their size, of how far the prediction is from what came (Naeini et al.,
    2015). None without a network."""
    pairs = [
        (row.uncertainty, 1 - row.overlap)
        for text in texts
        for row in text
        if row.uncertainty is not None
    ]
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


def summary(texts: Texts) -> dict[str, Any]:
    """The figures of a category, or of all."""
    first = [row for text in texts for row in text if row.depth == 1]
    return {
        "tokens": len(first),
        "covered": fmean(row.covered for row in first),
        "chain_tokens_a_step": chain_length(texts),
        "by_depth": by_depth(texts),
    }
