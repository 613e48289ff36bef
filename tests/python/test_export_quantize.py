"""Repacking block formats exactly, and rounding well where that cannot be."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from hypothesis.extra import numpy as arrays

from sapwood.errors import SapwoodError
from sapwood_export.quantize.formats import FORMATS
from sapwood_export.quantize.policy import Quantization
from sapwood_export.quantize.repack import EXACT, repack
from sapwood_export.quantize.round_to_nearest import quantize

gguf = pytest.importorskip("gguf")


def random_blocks(block_format: str, rows: int, blocks: int, seed: int) -> np.ndarray:
    """Random bytes with finite scales: every code and sign occurs."""
    kind = gguf.GGMLQuantizationType[block_format]
    _, size = gguf.GGML_QUANT_SIZES[kind]
    generator = np.random.default_rng(seed)
    raw = generator.integers(0, 256, (rows, blocks, size), dtype=np.uint8)
    halves = 2 if block_format in ("Q4_1", "Q4_K") else 1
    scales = generator.standard_normal((rows, blocks, halves)).astype(np.float16)
    raw[..., : 2 * halves] = scales.view(np.uint8).reshape(rows, blocks, -1)
    return raw.reshape(rows, -1)


@pytest.mark.parametrize(("block_format", "name"), sorted(EXACT))
def test_repacked_blocks_have_exactly_the_values_gguf_gives_them(
    block_format: str, name: str
) -> None:
    raw = random_blocks(block_format, 40, 6, seed=1)
    expected = gguf.dequantize(raw, gguf.GGMLQuantizationType[block_format])
    form = FORMATS[name]
    assert np.array_equal(repack(raw, block_format, name).dequantize(form), expected)


def test_q4_k_keeps_its_codes_and_loses_only_what_rounding_a_scale_loses() -> None:
    raw = random_blocks("Q4_K", 40, 3, seed=1)
    kind = gguf.GGMLQuantizationType.Q4_K
    form = FORMATS["int4_g32_min"]
    rows = repack(raw, "Q4_K", form.name)
    expected = gguf.dequantize(raw, kind)
    step = np.repeat(np.abs(rows.scales.astype(np.float32)), 32, axis=1)
    least = np.repeat(np.abs(rows.minima.astype(np.float32)), 32, axis=1)
    error = np.abs(rows.dequantize(form) - expected)
    # fp16 rounds to 11 bits: half a unit in the last of the scale, fifteen times, and the minimum.
    assert np.all(error <= (15 * step + least) * 2.0**-11)
    again = quantize(expected, form).dequantize(form)
    assert np.square(again - expected).sum() > 100 * np.square(error).sum()


def test_a_pair_of_formats_that_is_not_exact_is_refused() -> None:
    raw = random_blocks("Q4_1", 1, 1, seed=1)
    with pytest.raises(ValueError, match="cannot hold Q4_1 exactly"):
        repack(raw, "Q4_1", "int8_g32")


def plainly_rounded(x: np.ndarray, group: int, bits: int, has_min: bool) -> np.ndarray:
    """What rounding does that never looks for a better scale."""
    grouped = x.reshape(-1, group)
    if has_min:
        low = grouped.min(axis=1, keepdims=True)
        scale = (grouped.max(axis=1, keepdims=True) - low) / 15
        return (np.rint((grouped - low) / scale) * scale + low).reshape(x.shape)
    scale = np.abs(grouped).max(axis=1, keepdims=True) / (7 if bits == 4 else 127)
    return (np.rint(grouped / scale) * scale).reshape(x.shape)


@pytest.mark.parametrize("name", [name for name in FORMATS if name.startswith("int4")])
@pytest.mark.parametrize("heavy_tails", [False, True])
def test_the_search_for_a_scale_beats_plain_rounding(name: str, heavy_tails: bool) -> None:
    generator = np.random.default_rng(2)
    shape = (64, 512)
    x = generator.standard_t(4, shape) if heavy_tails else generator.standard_normal(shape)
    x = (x * 0.03).astype(np.float32)
    form = FORMATS[name]
    error = float(np.square(quantize(x, form).dequantize(form) - x).sum())
    plain = float(np.square(plainly_rounded(x, form.group, 4, form.has_min) - x).sum())
    assert error < 0.9 * plain


@settings(max_examples=80, deadline=None)
@given(
    name=st.sampled_from(sorted(FORMATS)),
    x=arrays.arrays(
        np.float32,
        (3, 128),
        elements=st.floats(-1000, 1000, width=32, allow_subnormal=False),
    ),
)
def test_no_weight_is_further_off_than_the_groups_range_allows(name: str, x: np.ndarray) -> None:
    """Whatever the weights: the error stays within a bound that the group's range gives."""
    form = FORMATS[name]
    rows = quantize(x, form)
    assert np.isfinite(rows.scales).all()
    assert rows.codes.max() <= form.largest_code
    error = np.abs(rows.dequantize(form) - x).reshape(-1, form.group).max(axis=1)
    span = np.abs(x).reshape(-1, form.group).max(axis=1)
    # A quarter of the largest number is what cutting off the range may cost an outlier at most.
    share = 0.01 if form.bits == 8 else 0.25
    assert np.all(error <= share * span + 1e-5)


def test_constant_and_zero_groups_survive() -> None:
    x = np.zeros((2, 128), dtype=np.float32)
    x[1] = 0.25
    for form in FORMATS.values():
        back = quantize(x, form).dequantize(form)
        assert np.array_equal(back[0], x[0])
        assert np.allclose(back[1], x[1], rtol=2e-3)


def test_many_chunks_give_what_one_gives() -> None:
    generator = np.random.default_rng(3)
    x = generator.standard_normal((600, 1024)).astype(np.float32)
    form = FORMATS["int4_g32_min"]
    whole = quantize(x, form)
    first = quantize(x[:7], form)
    assert np.array_equal(whole.codes[:7], first.codes)
    assert np.array_equal(whole.scales[:7], first.scales)


def test_an_unknown_format_is_refused_by_name() -> None:
    with pytest.raises(SapwoodError, match="unknown quantisation format 'int3'; known are int4"):
        Quantization("int3")
