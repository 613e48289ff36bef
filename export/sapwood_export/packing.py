"""The byte layout of packed weights: the Python twin of runtime_cpp/src/kernels/linear.h.

Outputs are cut into panels of 16, inputs into groups. A panel is the sequence of its groups, a
group its codes, then 16 fp16 scales, then, if the format has them, 16 fp16 minima. Codes come in
runs of 32 inputs: int4 as bytes [4][16 outputs][4] that hold input 8q + k in the low and
8q + 4 + k in the high nibble; int8 as bytes [8][16 outputs][4] that hold input 4q + k.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from sapwood_export.quantize.formats import LinearFormat, QuantizedRows
from sapwood_export.spec import PANEL

RUN = 32  # inputs whose codes lie together
ALIGNMENT = 64  # of every tensor in the weights file, bytes


def group_bytes(form: LinearFormat) -> int:
    """Bytes of one group of a panel."""
    return form.group * PANEL * form.bits // 8 + PANEL * (4 if form.has_min else 2)


def packed_bytes(form: LinearFormat, outputs: int, inputs: int) -> int:
    """Bytes of a packed [outputs, inputs] tensor; the last panel is always whole."""
    panels = (outputs + PANEL - 1) // PANEL
    return panels * (inputs // form.group) * group_bytes(form)


def pack(form: LinearFormat, weights: QuantizedRows) -> NDArray[np.uint8]:
    """uint8 [panels, bytes a panel]. Outputs that fill up the last panel have zero scales."""
    outputs, inputs = weights.codes.shape
    missing = -outputs % PANEL
    codes, scales, minima = weights.codes, weights.scales, weights.minima
    if missing:
        codes = np.pad(codes, ((0, missing), (0, 0)))
        scales = np.pad(scales, ((0, missing), (0, 0)))
        minima = None if minima is None else np.pad(minima, ((0, missing), (0, 0)))
    panels, groups = codes.shape[0] // PANEL, inputs // form.group
    packed = np.empty((panels, groups, group_bytes(form)), dtype=np.uint8)
    code_bytes = form.group * PANEL * form.bits // 8
    runs = form.group // RUN
    if form.bits == 4:
        # [panel, output, group, run, q, half, k] -> [panel, group, run, q, output, k]
        split = codes.reshape(panels, PANEL, groups, runs, 4, 2, 4)
        joined = split[..., 0, :] | (split[..., 1, :] << np.uint8(4))
    else:
        joined = codes.reshape(panels, PANEL, groups, runs, 8, 4)
    packed[..., :code_bytes] = joined.transpose(0, 2, 3, 4, 1, 5).reshape(panels, groups, -1)
    packed[..., code_bytes : code_bytes + 2 * PANEL] = _half_bytes(scales, panels)
    if minima is not None:
        packed[..., code_bytes + 2 * PANEL :] = _half_bytes(minima, panels)
    return packed.reshape(panels, -1)


def unpack(
    form: LinearFormat, packed: NDArray[np.uint8], outputs: int, inputs: int
) -> QuantizedRows:
    """The inverse of ``pack``, without the outputs that fill up the last panel."""
    groups, runs = inputs // form.group, form.group // RUN
    panels = (outputs + PANEL - 1) // PANEL
    split = packed.reshape(panels, groups, group_bytes(form))
    code_bytes = form.group * PANEL * form.bits // 8
    if form.bits == 4:
        joined = split[..., :code_bytes].reshape(panels, groups, runs, 4, PANEL, 4)
        joined = joined.transpose(0, 4, 1, 2, 3, 5)
        codes = np.stack([joined & np.uint8(15), joined >> np.uint8(4)], axis=-2)
    else:
        joined = split[..., :code_bytes].reshape(panels, groups, runs, 8, PANEL, 4)
        codes = joined.transpose(0, 4, 1, 2, 3, 5)
    codes = codes.reshape(panels * PANEL, inputs)[:outputs]
    scales = _halves(split[..., code_bytes : code_bytes + 2 * PANEL])[:outputs]
    minima = _halves(split[..., code_bytes + 2 * PANEL :])[:outputs] if form.has_min else None
    return QuantizedRows(codes, scales, minima)


def _half_bytes(values: NDArray[np.float16], panels: int) -> NDArray[np.uint8]:
    """[outputs, groups] halves as bytes [panels, groups, 32]."""
    by_group = values.astype("<f2").reshape(panels, PANEL, -1).transpose(0, 2, 1)
    return np.ascontiguousarray(by_group).view(np.uint8)


def _halves(raw: NDArray[np.uint8]) -> NDArray[np.float16]:
    """Bytes [panels, groups, 32] as [outputs, groups] halves."""
    values = np.ascontiguousarray(raw).view("<f2").transpose(0, 2, 1)
    by_output: NDArray[np.float16] = values.reshape(values.shape[0] * PANEL, -1)
    return by_output
