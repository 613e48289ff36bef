"""Which part of the vocabulary a draft's head covers.

A larger part foretells more, and costs more in every pass. FR-Spec (Zhao et al. 2025) has the
observation: a small part of a vocabulary makes up nearly all of a model's text. What a text holds
already the draft can say anyway (text_tokens.py), so only a token's first occurrence in a text
speaks for it.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sapwood import _runtime
from sapwood_export.distill.shards import Shard
from sapwood_export.packing import packed_bytes
from sapwood_export.quantize.formats import linear_format
from sapwood_export.quantize.policy import TABLE_FORMAT
from sapwood_export.spec import ModelSpec

SIZES = (1024, 2048, 4096, 6144, 8192, 12288, 16384)

# The draft that sizes are compared for: a chain of so many passes a step, of which each is
# accepted with this probability where the vocabulary covers the token.
_PASSES = 4
_ACCEPTANCE = 0.5

_NEARLY = 0.99

_LAYER_FORMAT = "int4_g32_min"
_OTHER_FORMAT = "int8_g32"  # of what lies around the layer
_TIMINGS = 25

Cost = Callable[[str, int, int], float]
"""Seconds of one row through a linear layer: format, outputs, inputs."""


@dataclass(frozen=True)
class SubsetChoice:
    """A size that was considered."""

    size: int
    coverage: float  # share of the target's tokens, with those the text held before
    pass_cost: float  # of one draft pass, in rows of the target
    value: float  # tokens a step by the time of a step, relative to the target alone


def token_counts(texts: Iterable[NDArray[np.int32]], vocabulary_size: int) -> NDArray[np.int64]:
    """How often each token occurs: int64 [vocabulary_size]."""
    counts = np.zeros(vocabulary_size, dtype=np.int64)
    for tokens in texts:
        counts += np.bincount(tokens, minlength=vocabulary_size)
    return counts


@dataclass(frozen=True)
class FirstOccurrences:
    """Of the tokens that the target wrote, those that its text did not hold before."""

    counts: NDArray[np.int64]  # by token
    written: int  # tokens in all, with those that the text did hold

    @staticmethod
    def of(shards: Iterable[Shard], vocabulary_size: int) -> FirstOccurrences:
        """Of all texts in the shards."""
        counts = np.zeros(vocabulary_size, dtype=np.int64)
        written = 0
        for shard in shards:
            for sequence, start in enumerate(shard.start):
                begin, end = shard.offsets[sequence : sequence + 2]
                tokens, first = np.unique(shard.tokens[begin:end], return_index=True)
                counts[tokens[first >= start]] += 1
                written += int(end - begin - start)
        return FirstOccurrences(counts, written)


def most_frequent(counts: NDArray[np.int64], size: int) -> NDArray[np.int32]:
    """Ids of the ``size`` most frequent tokens, ascending. Of equals, the lower id goes first."""
    order = np.argsort(-counts, kind="stable")[:size]
    return np.sort(order).astype(np.int32)


def weigh_sizes(
    spec: ModelSpec, occurrences: FirstOccurrences, cost: Cost, sizes: Sequence[int] = SIZES
) -> list[SubsetChoice]:
    """Every size that is smaller than the vocabulary, or the whole vocabulary if none is.

    With coverage c and acceptance a, a step of D draft passes yields 1 + ac + (ac)^2 + ... + (ac)^D
    tokens in the time of 1 + D * (cost of a pass) rows of the target.
    """
    counts = occurrences.counts
    missed = counts.sum() - np.sort(counts)[::-1].cumsum()
    rising = 1 - missed / max(1, occurrences.written)
    h = spec.hidden_size
    layer = sum(cost(_LAYER_FORMAT, *shape) for shape in _layer_shapes(spec))
    target = spec.layers * layer + cost(TABLE_FORMAT, spec.vocabulary_size, h)
    choices = []
    for size in [size for size in sizes if size < spec.vocabulary_size] or [spec.vocabulary_size]:
        coverage = float(rising[size - 1])
        draft = layer + cost(_OTHER_FORMAT, h, 2 * h) + cost(_OTHER_FORMAT, size, h)
        tokens = sum((_ACCEPTANCE * coverage) ** depth for depth in range(_PASSES + 1))
        value = tokens / (1 + _PASSES * draft / target)
        choices.append(SubsetChoice(size, coverage, draft / target, value))
    return choices


def best_size(choices: Sequence[SubsetChoice]) -> int:
    """The largest size whose value is the greatest but for a hundredth: timings differ by that, and
    other text than this has rarer words."""
    best = max(choice.value for choice in choices)
    return max(choice.size for choice in choices if choice.value >= _NEARLY * best)


def measured_cost(format_name: str, outputs: int, inputs: int) -> float:
    """Seconds of one row through the runtime's own kernel on this machine, the best of several."""
    form = linear_format(format_name)
    data = np.zeros(packed_bytes(form, outputs, inputs), dtype=np.uint8)
    weights = _runtime.PackedLinear(data, outputs, inputs, format_name)
    kernels = _runtime.kernels(_runtime.active_kernels())
    row = np.ones((1, inputs), dtype=np.float32)
    best = np.inf
    for _ in range(_TIMINGS):
        begin = time.perf_counter()
        kernels.linear(weights, row)
        best = min(best, time.perf_counter() - begin)
    return float(best)


def _layer_shapes(spec: ModelSpec) -> list[tuple[int, int]]:
    h, units = spec.hidden_size, spec.intermediate_size
    return [
        (spec.qkv_outputs, h),
        (h, spec.heads * spec.head_dim),
        (2 * units, h),
        (h, units),
    ]
