"""The byte layout of packed weights, against the words of runtime_cpp/src/kernels/linear.h."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from sapwood_export.packing import group_bytes, pack, packed_bytes, unpack
from sapwood_export.quantize.formats import FORMATS, LinearFormat, QuantizedRows


def random_rows(form: LinearFormat, outputs: int, groups: int, seed: int = 0) -> QuantizedRows:
    generator = np.random.default_rng(seed)
    shape = (outputs, groups * form.group)
    codes = generator.integers(0, form.largest_code + 1, shape, dtype=np.uint8)
    scales = generator.standard_normal((outputs, groups)).astype(np.float16)
    minima = generator.standard_normal((outputs, groups)).astype(np.float16)
    return QuantizedRows(codes, scales, minima if form.has_min else None)


def packed_by_the_book(form: LinearFormat, rows: QuantizedRows) -> bytes:
    """The header's description, one byte at a time."""
    outputs, inputs = rows.codes.shape
    result = bytearray()
    for panel in range(0, outputs, 16):
        lanes = range(panel, panel + 16)

        def code(lane: int, k: int) -> int:
            return int(rows.codes[lane, k]) if lane < outputs else 0

        for group in range(inputs // form.group):
            first = group * form.group
            for run in range(first, first + form.group, 32):
                if form.bits == 4:
                    for q in range(4):
                        for lane in lanes:
                            for k in range(4):
                                low = code(lane, run + 8 * q + k)
                                high = code(lane, run + 8 * q + 4 + k)
                                result.append(low | high << 4)
                else:
                    for q in range(8):
                        for lane in lanes:
                            for k in range(4):
                                result.append(code(lane, run + 4 * q + k))
            for values in (rows.scales, rows.minima):
                if values is not None:
                    for lane in lanes:
                        value = values[lane, group] if lane < outputs else np.float16(0)
                        result += np.float16(value).tobytes()
    return bytes(result)


@pytest.mark.parametrize("name", FORMATS)
@pytest.mark.parametrize("outputs", [1, 16, 21, 48])
def test_packed_bytes_are_those_of_the_headers_description(name: str, outputs: int) -> None:
    form = FORMATS[name]
    rows = random_rows(form, outputs, 2)
    packed = pack(form, rows)
    assert packed.tobytes() == packed_by_the_book(form, rows)
    assert packed.size == packed_bytes(form, outputs, 2 * form.group)


@settings(max_examples=60, deadline=None)
@given(
    name=st.sampled_from(sorted(FORMATS)),
    outputs=st.integers(1, 70),
    groups=st.integers(1, 5),
    seed=st.integers(0, 2**32 - 1),
)
def test_unpacking_gives_back_what_was_packed(
    name: str, outputs: int, groups: int, seed: int
) -> None:
    form = FORMATS[name]
    rows = random_rows(form, outputs, groups, seed)
    back = unpack(form, pack(form, rows).reshape(-1), outputs, groups * form.group)
    assert np.array_equal(back.codes, rows.codes)
    assert np.array_equal(back.scales, rows.scales)
    if rows.minima is None:
        assert back.minima is None
    else:
        assert back.minima is not None
        assert np.array_equal(back.minima, rows.minima)


def test_outputs_that_fill_up_the_last_panel_have_zero_scales() -> None:
    form = FORMATS["int4_g32_min"]
    packed = pack(form, random_rows(form, 17, 1)).reshape(2, group_bytes(form))
    halves = packed[1, 256:].view(np.float16)
    assert np.all(halves[1:16] == 0)
    assert np.all(halves[17:] == 0)
    assert halves[0] != 0


def test_group_sizes_are_those_of_the_header() -> None:
    sizes = {name: group_bytes(form) for name, form in FORMATS.items()}
    assert sizes == {
        "int4_g32": 256 + 32,
        "int4_g32_min": 256 + 64,
        "int4_g128": 1024 + 32,
        "int4_g128_min": 1024 + 64,
        "int8_g32": 512 + 32,
    }
