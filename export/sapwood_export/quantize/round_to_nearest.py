"""Round-to-nearest quantisation with a small search for the scale of each group.

For every group several scales are tried; for each the codes are rounded and the scale (and minimum)
refitted to them by least squares, and the one with the least squared error is kept. That is the
usual remedy for plain rounding's habit of spending the range on one outlier.
"""

from __future__ import annotations

import os
from concurrent.futures import ThreadPoolExecutor

import numpy as np
from numpy.typing import NDArray

from sapwood_export.quantize.formats import LinearFormat, QuantizedRows

LARGEST_MAGNITUDE = 65504.0  # of fp16: a larger weight fits no scale or minimum

_CHUNK = 1 << 17  # numbers quantised at a time: their temporaries stay in the second-level cache
# The code that the group's largest number gets, before the scale is refitted to the codes.
_SYMMETRIC_TARGETS = (7.0, 7.3, 7.6, 7.8, 8.0, 8.2, 8.4, 8.7)
# Shares of the range that are cut off below and above, before the refit.
_CUTS = (
    (0.0, 0.0),
    (0.03, 0.0),
    (0.0, 0.03),
    (0.03, 0.03),
    (0.07, 0.03),
    (0.03, 0.07),
    (0.07, 0.07),
)

_SMALLEST = 1e-30  # far below what fp16 scales can tell from zero

Floats = NDArray[np.float32]


def quantize(weights: Floats, form: LinearFormat) -> QuantizedRows:
    """float32 [rows, inputs], finite and within fp16's range, to codes of ``form``.

    ``inputs`` is a multiple of ``form.group``.
    """
    rows, inputs = weights.shape
    groups = weights.reshape(-1, form.group)
    step = max(1, _CHUNK // form.group)
    pieces = [groups[start : start + step] for start in range(0, len(groups), step)]
    one = _with_minimum if form.has_min else (_symmetric4 if form.bits == 4 else _symmetric8)
    if len(pieces) == 1:
        done = [one(pieces[0], form)]
    else:
        with ThreadPoolExecutor(max_workers=os.cpu_count() or 1) as pool:
            done = list(pool.map(lambda piece: one(piece, form), pieces))
    codes = np.concatenate([codes for codes, _, _ in done]).reshape(rows, inputs)
    scales = np.concatenate([scales for _, scales, _ in done]).reshape(rows, -1)
    minima = None
    if form.has_min:
        minima = np.concatenate([minimum for _, _, minimum in done]).reshape(rows, -1)
    return QuantizedRows(codes, scales, minima)


Group = tuple[NDArray[np.uint8], NDArray[np.float16], NDArray[np.float16]]


def _symmetric8(x: Floats, form: LinearFormat) -> Group:
    largest = np.abs(x).max(axis=1)
    scales = (largest / np.float32(127)).astype(np.float16)
    codes = np.rint(x * _reciprocal(scales)[:, None])
    codes = np.clip(codes, -128, 127) + np.float32(form.zero_point)
    return codes.astype(np.uint8), scales, np.zeros_like(scales)


def _symmetric4(x: Floats, form: LinearFormat) -> Group:
    """Codes -8 .. 7. The largest number is mapped to the negative side, which reaches further."""
    at = np.abs(x).argmax(axis=1)
    largest = np.take_along_axis(x, at[:, None], axis=1)[:, 0]
    best_scale = np.zeros_like(largest)
    best_gain = np.full_like(largest, -1.0)
    for target in _SYMMETRIC_TARGETS:
        inverse = _safe_divide(np.full_like(largest, -target), largest)
        codes = np.clip(np.rint(x * inverse[:, None]), -8, 7)
        products = np.einsum("gi,gi->g", x, codes)
        squares = np.einsum("gi,gi->g", codes, codes)
        # With the fitted scale products / squares the squared error falls by this much.
        gain = _safe_divide(products * products, squares)
        better = gain > best_gain
        best_gain = np.where(better, gain, best_gain)
        best_scale = np.where(better, _safe_divide(products, squares), best_scale)
    scales = best_scale.astype(np.float16)
    codes = np.clip(np.rint(x * _reciprocal(scales)[:, None]), -8, 7)
    return (codes + np.float32(form.zero_point)).astype(np.uint8), scales, np.zeros_like(scales)


def _with_minimum(x: Floats, form: LinearFormat) -> Group:
    """Codes 0 .. 15 above a minimum."""
    count = np.float32(x.shape[1])
    low, high = x.min(axis=1), x.max(axis=1)
    span = high - low
    total = x.sum(axis=1)
    best_scale, best_minimum = np.zeros_like(low), total / count
    best_gain = np.full_like(low, -np.inf)
    top = np.float32(form.largest_code)
    centred = x - best_minimum[:, None]  # keeps the sums below free of cancellation
    for cut_low, cut_high in _CUTS:
        floor = low + np.float32(cut_low) * span
        step = np.float32(1 - cut_low - cut_high) * span / top
        inverse = _safe_divide(np.ones_like(step), step)
        codes = np.clip(np.rint((x - floor[:, None]) * inverse[:, None]), 0, top)
        sums = codes.sum(axis=1)
        squares = np.einsum("gi,gi->g", codes, codes) - sums * sums / count
        products = np.einsum("gi,gi->g", centred, codes)
        scale = _safe_divide(products, squares)
        gain = scale * products
        better = gain > best_gain
        best_gain = np.where(better, gain, best_gain)
        best_scale = np.where(better, scale, best_scale)
        best_minimum = np.where(better, (total - scale * sums) / count, best_minimum)
    scales, minima = best_scale.astype(np.float16), best_minimum.astype(np.float16)
    shifted = x - minima.astype(np.float32)[:, None]
    codes = np.clip(np.rint(shifted * _reciprocal(scales)[:, None]), 0, top)
    return codes.astype(np.uint8), scales, minima


def _reciprocal(scales: NDArray[np.float16]) -> Floats:
    wide = scales.astype(np.float32)
    return _safe_divide(np.ones_like(wide), wide)


def _safe_divide(numerator: Floats, denominator: Floats) -> Floats:
    """numerator / denominator, 0 where the denominator is so small that it might overflow."""
    quotient = np.zeros_like(numerator)
    np.divide(numerator, denominator, out=quotient, where=np.abs(denominator) > _SMALLEST)
    return quotient
