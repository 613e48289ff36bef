"""The quantised formats of a bundle, and weights in them before they are packed."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from sapwood.errors import SapwoodError

ACTIVATION_GROUP = 32  # inputs that share an activation scale; every weight group is a multiple


@dataclass(frozen=True)
class LinearFormat:
    """One layout of runtime_cpp/src/kernels/linear.h.

    A weight is ``scale * (code - zero_point) + minimum``; scale and minimum are fp16, one for each
    ``group`` of inputs.
    """

    name: str
    bits: int
    group: int
    has_min: bool

    @property
    def zero_point(self) -> int:
        if self.bits == 8:
            return 128
        return 0 if self.has_min else 8

    @property
    def largest_code(self) -> int:
        return (1 << self.bits) - 1

    @property
    def bits_per_weight(self) -> float:
        return self.bits + 16 * (2 if self.has_min else 1) / self.group


FORMATS = {
    form.name: form
    for form in (
        LinearFormat("int4_g32", 4, 32, False),
        LinearFormat("int4_g32_min", 4, 32, True),
        LinearFormat("int4_g128", 4, 128, False),
        LinearFormat("int4_g128_min", 4, 128, True),
        LinearFormat("int8_g32", 8, 32, False),
    )
}


def linear_format(name: str) -> LinearFormat:
    """The format of that name, or one line that lists the names there are."""
    try:
        return FORMATS[name]
    except KeyError:
        raise SapwoodError(
            f"unknown quantisation format '{name}'; known are {', '.join(FORMATS)}"
        ) from None


@dataclass(frozen=True)
class QuantizedRows:
    """Rows of weights: unsigned codes [rows, inputs], scales and minima [rows, inputs / group]."""

    codes: NDArray[np.uint8]
    scales: NDArray[np.float16]
    minima: NDArray[np.float16] | None  # only where the format has them

    def dequantize(self, form: LinearFormat) -> NDArray[np.float32]:
        """float32 [rows, inputs], with the arithmetic the runtime's embedding uses."""
        rows, inputs = self.codes.shape
        grouped = self.codes.reshape(rows, inputs // form.group, form.group).astype(np.float32)
        values = (grouped - np.float32(form.zero_point)) * self.scales.astype(np.float32)[..., None]
        if self.minima is not None:
            values += self.minima.astype(np.float32)[..., None]
        result: NDArray[np.float32] = values.reshape(rows, inputs)
        return result
