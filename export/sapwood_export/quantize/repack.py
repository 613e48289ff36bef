"""GGUF block formats whose codes a bundle's formats hold, taken over code by code.

All but one are held exactly. A block is 32 numbers of a row behind an fp16 scale. Byte j of the
nibbles holds number j in its low and number j + 16 in its high half. Value of a code c:
  Q4_0    scale * (c - 8)
  Q4_1    scale * c + minimum, an fp16 minimum following the scale
  Q5_0    scale * (c - 16); four bytes of fifth bits, number j in bit j, precede the nibbles
  Q8_0    scale * c, 32 signed bytes instead of nibbles
  IQ4_NL  scale * table[c]
int8 codes hold c - 8, c - 16 and table[c] as they hold any signed byte.

Q4_K, the exception, is eight such groups of 32 behind one fp16 scale s and one fp16 minimum m. Each
group has six-bit factors a and b, and its codes stand for s * a * c - m * b. Those products have up
to 17 significant bits, fp16 has 11: the codes are kept, scale and minimum are rounded, which costs
at most 2^-12 of either. Quantising the values again would cost hundreds of times that.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sapwood_export.quantize.formats import QuantizedRows

BLOCK = 32
EXACT = {
    ("Q4_0", "int4_g32"),
    ("Q4_0", "int8_g32"),
    ("Q4_1", "int4_g32_min"),
    ("Q5_0", "int8_g32"),
    ("Q8_0", "int8_g32"),
    ("IQ4_NL", "int8_g32"),
}
CODES_KEPT = {("Q4_K", "int4_g32_min")}

_HEADER_BYTES = {"Q4_0": 2, "Q4_1": 4, "Q5_0": 6, "Q8_0": 2, "IQ4_NL": 2}
_K_FACTOR_BYTES = 12
_K_NIBBLE_BYTES = 128


def repack(blocks: NDArray[np.uint8], block_format: str, format_name: str) -> QuantizedRows:
    """Raw blocks [rows, bytes a row] as codes of the bundle format.

    The pair of formats is in ``EXACT`` or ``CODES_KEPT``.
    """
    if (block_format, format_name) in CODES_KEPT:
        return _repack_q4_k(blocks)
    if (block_format, format_name) not in EXACT:
        raise ValueError(f"{format_name} cannot hold {block_format} exactly")
    rows, header = blocks.shape[0], _HEADER_BYTES[block_format]
    code_bytes = BLOCK if block_format == "Q8_0" else BLOCK // 2
    split = blocks.reshape(rows, -1, header + code_bytes)
    scales = _halves(split[..., :2])
    codes = split[..., header:]
    minima = None
    if block_format == "Q8_0":
        codes = codes ^ np.uint8(0x80)  # two's complement to biased by 128
    else:
        codes = np.concatenate([codes & np.uint8(15), codes >> np.uint8(4)], axis=-1)
    if block_format == "Q4_0" and format_name == "int8_g32":
        codes = codes + np.uint8(128 - 8)
    elif block_format == "Q4_1":
        minima = _halves(split[..., 2:4])
    elif block_format == "Q5_0":
        fifth = np.unpackbits(split[..., 2:6], axis=-1, bitorder="little")
        codes = (codes | (fifth << np.uint8(4))) + np.uint8(128 - 16)
    elif block_format == "IQ4_NL":
        codes = _nonlinear_table()[codes]
    return QuantizedRows(codes.reshape(rows, -1), scales, minima)


def _repack_q4_k(blocks: NDArray[np.uint8]) -> QuantizedRows:
    rows = blocks.shape[0]
    split = blocks.reshape(rows, -1, 4 + _K_FACTOR_BYTES + _K_NIBBLE_BYTES)
    scale_factors, minimum_factors = _q4_k_factors(split[..., 4 : 4 + _K_FACTOR_BYTES])
    scales = _halves(split[..., :2]).astype(np.float32)[..., None] * scale_factors
    minima = _halves(split[..., 2:4]).astype(np.float32)[..., None] * -minimum_factors
    # 32 bytes hold a group in their low and the next one in their high halves.
    nibbles = split[..., 4 + _K_FACTOR_BYTES :].reshape(rows, -1, 4, BLOCK)
    codes = np.stack([nibbles & np.uint8(15), nibbles >> np.uint8(4)], axis=-2)
    return QuantizedRows(
        codes.reshape(rows, -1),
        scales.astype(np.float16).reshape(rows, -1),
        minima.astype(np.float16).reshape(rows, -1),
    )


def _q4_k_factors(
    packed: NDArray[np.uint8],
) -> tuple[NDArray[np.float32], NDArray[np.float32]]:
    """Twelve bytes as eight six-bit factors of the scale and eight of the minimum.

    Bytes 0-3 and 4-7 hold the first four of either in their low six bits. Bytes 8-11 hold the low
    four bits of the last four of both; their two high bits are on top of bytes 0-3 and 4-7.
    """
    first, second, low = packed[..., 0:4], packed[..., 4:8], packed[..., 8:12]
    top = np.uint8(0x30)
    scale = np.concatenate([first & 63, (low & 15) | ((first >> 2) & top)], axis=-1)
    minimum = np.concatenate([second & 63, (low >> 4) | ((second >> 2) & top)], axis=-1)
    return scale.astype(np.float32), minimum.astype(np.float32)


def _halves(pairs: NDArray[np.uint8]) -> NDArray[np.float16]:
    return np.ascontiguousarray(pairs).view("<f2")[..., 0]


def _nonlinear_table() -> NDArray[np.uint8]:
    """IQ4_NL's sixteen values, biased by 128."""
    from gguf.quants import IQ4_NL

    biased: NDArray[np.uint8] = (np.asarray(IQ4_NL.kvalues, dtype=np.int16) + 128).astype(np.uint8)
    return biased
