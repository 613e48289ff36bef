"""Linear layers that XNNPACK computes: int8 activations of a scale a row, weights of the bundle.

XNNPACK's 4-bit weights are symmetric in groups, its 8-bit ones symmetric in rows. A bundle's
4-bit codes and scales are taken as they are. Where a format has minima,

    w = scale * code + minimum = scale * (code - 8) + offset,    offset = minimum + 8 * scale,

the first part is XNNPACK's, and the second, which is one number for a group, multiplies the sum of
the group's inputs: a small linear layer in float32 beside it. Nothing is rounded twice but the
scales, which XNNPACK keeps as bfloat16. Eight-bit weights are rounded again, to a scale a row.

Where a few inputs are far larger than the others, a scale a row leaves the others nothing: such a
layer takes its inputs as they are, in float32, over 8-bit weights.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn
from torch.ao.quantization.fx import _decomposed  # noqa: F401  (registers the operators)
from torch.nn import functional

from sapwood_export.packing import unpack
from sapwood_export.quantize.formats import QuantizedRows, linear_format

_MIDDLE = 8  # of the 4-bit codes


def dynamically_quantized(x: Tensor) -> Tensor:
    """x [R, n] rounded to int8 codes, a scale and a zero point a row, and back."""
    run = torch.ops.quantized_decomposed
    scale, zero_point = run.choose_qparams_per_token_asymmetric(x, torch.int8)
    codes = run.quantize_per_token(x, scale, zero_point, -128, 127, torch.int8)
    rounded: Tensor = run.dequantize_per_token(
        codes, scale, zero_point, -128, 127, torch.int8, torch.float32
    )
    return rounded


class XnnpackLinear(nn.Module):
    """y [R, outputs] of x [R, inputs]: codes int8 [outputs, inputs], scales float32 [outputs, -1].

    ``offsets`` [outputs, groups] are what every input of a group has added to its weight.
    ``float_inputs``: x is not rounded.
    """

    codes: Tensor
    scales: Tensor
    zeros: Tensor
    offsets: Tensor
    sums: Tensor

    def __init__(
        self,
        codes: NDArray[np.int8],
        scales: NDArray[np.float32],
        bits: int,
        offsets: NDArray[np.float32] | None = None,
        bias: Tensor | None = None,
        float_inputs: bool = False,
    ) -> None:
        super().__init__()
        self.float_inputs = float_inputs
        self.outputs, self.inputs = codes.shape
        self.bits = bits
        self.group = codes.shape[1] // scales.shape[1]
        self.has_offsets = offsets is not None
        self.register_buffer("codes", torch.from_numpy(codes))
        numbers = torch.from_numpy(scales)
        self.register_buffer("scales", numbers[:, 0].contiguous() if bits == 8 else numbers)
        self.register_buffer("zeros", torch.zeros(self.scales.shape, dtype=torch.int64))
        self.bias = None if bias is None else nn.Parameter(bias, requires_grad=False)
        if offsets is not None:
            groups = np.arange(codes.shape[1]) // self.group
            sums = groups[None, :] == np.arange(scales.shape[1])[:, None]
            self.register_buffer("offsets", torch.from_numpy(offsets))
            self.register_buffer("sums", torch.from_numpy(sums.astype(np.float32)))

    def weight(self) -> Tensor:
        """What XNNPACK takes for a weight: its codes, and how to make numbers of them."""
        run = torch.ops.quantized_decomposed
        weight: Tensor
        if self.bits == 8:
            weight = run.dequantize_per_channel(
                self.codes, self.scales, self.zeros, 0, -128, 127, torch.int8
            )
        else:
            weight = run.dequantize_per_channel_group(
                self.codes, self.scales, self.zeros, -8, 7, torch.int8, self.group, torch.float32
            )
        return weight

    def forward(self, x: Tensor) -> Tensor:
        weight = self.weight()
        inputs = x if self.float_inputs else dynamically_quantized(x)
        y = functional.linear(inputs, weight, self.bias)
        if self.has_offsets:
            y = y + functional.linear(functional.linear(x, self.sums), self.offsets)
        return y


def xnnpack_linear(
    weights: Path,
    entry: Any,
    bias: Tensor | None = None,
    rows: NDArray[np.int64] | None = None,
    float_inputs: bool = False,
) -> XnnpackLinear:
    """The layer of a packed tensor of the bundle; ``rows`` puts its outputs into another order."""
    form = linear_format(entry["format"])
    outputs, inputs = entry["shape"]
    raw = np.fromfile(weights, dtype=np.uint8, count=entry["bytes"], offset=entry["offset"])
    packed = unpack(form, raw, outputs, inputs)
    if rows is not None:
        minima = None if packed.minima is None else packed.minima[rows]
        packed = QuantizedRows(packed.codes[rows], packed.scales[rows], minima)
    # Over float32 inputs XNNPACK has no 4-bit weights in groups.
    if form.bits == 8 or float_inputs:
        return _by_row(packed.dequantize(form), bias, float_inputs)
    scales = packed.scales.astype(np.float32)
    codes = (packed.codes.astype(np.int16) - _MIDDLE).astype(np.int8)
    if packed.minima is None:
        return XnnpackLinear(codes, scales, 4, bias=bias)
    offsets = packed.minima.astype(np.float32) + _MIDDLE * scales
    return XnnpackLinear(codes, scales, 4, offsets, bias)


def _by_row(weight: NDArray[np.float32], bias: Tensor | None, float_inputs: bool) -> XnnpackLinear:
    """Eight bits and a scale a row, the largest weight at 127."""
    scales = np.maximum(np.abs(weight).max(axis=1, keepdims=True) / 127, np.float32(1e-10))
    codes = np.clip(np.rint(weight / scales), -127, 127).astype(np.int8)
    return XnnpackLinear(codes, scales.astype(np.float32), 8, None, bias, float_inputs)
