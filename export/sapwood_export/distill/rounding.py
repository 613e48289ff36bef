"""Training through the rounding of the packed formats, so that packing costs little.

The forward pass computes with weights on the grid that four bits leave them, the gradient passes
as if they had not been rounded (the straight-through estimator, Bengio et al. 2013).
"""

from __future__ import annotations

from typing import Any

import torch
from torch import Tensor

from sapwood_export.quantize.formats import LinearFormat

_SMALLEST = 1e-8  # of a step: a group of equal weights stays as it is


class _Rounded(torch.autograd.Function):
    @staticmethod
    def forward(context: Any, weight: Tensor, group: int, largest_code: int) -> Tensor:
        groups = weight.view(-1, group)
        low, high = groups.aminmax(dim=1, keepdim=True)
        step = ((high - low) / largest_code).clamp_min_(_SMALLEST)
        codes = (groups - low).div_(step).round_()
        return codes.mul_(step).add_(low).view_as(weight)

    @staticmethod
    def backward(context: Any, gradient: Tensor) -> tuple[Tensor, None, None]:
        return gradient, None, None


def rounded(weight: Tensor, form: LinearFormat) -> Tensor:
    """weight [outputs, inputs] as a four-bit format with minima holds it, by plain rounding.

    Other formats round so little, or are so rare here, that the weight comes back as it is.
    """
    if form.bits > 4 or not form.has_min:
        return weight
    result: Tensor = _Rounded.apply(  # type: ignore[no-untyped-call]
        weight, form.group, form.largest_code
    )
    return result
