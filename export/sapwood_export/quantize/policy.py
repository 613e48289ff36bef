"""Which format each linear layer gets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from sapwood_export.quantize.formats import FORMATS, LinearFormat, linear_format
from sapwood_export.sources.base import SourceTensor

AUTOMATIC = "auto"
CHOICES = (AUTOMATIC, *FORMATS)

TABLE_FORMAT = "int8_g32"  # embeddings and heads: four bits there cost more quality than they save
FLOAT_FORMAT = "int4_g32_min"  # of weights that come as plain numbers

# Source formats that "auto" keeps, exactly or with at least their precision. What has fewer bits
# than these, or other scales, becomes FLOAT_FORMAT.
_KEPT = {
    "Q4_0": "int4_g32",
    "Q4_1": "int4_g32_min",
    "Q4_K": "int4_g32_min",
    "Q5_0": "int8_g32",
    "Q5_1": "int8_g32",
    "Q5_K": "int8_g32",
    "Q6_K": "int8_g32",
    "Q8_0": "int8_g32",
    "IQ4_NL": "int8_g32",
}


@dataclass(frozen=True)
class Quantization:
    """A format by name for every linear layer, or "auto": the one that loses nothing or least."""

    requested: str = AUTOMATIC

    def __post_init__(self) -> None:
        if self.requested != AUTOMATIC:
            linear_format(self.requested)

    def table_format(self) -> LinearFormat:
        """The embedding's or the head's."""
        return linear_format(TABLE_FORMAT)

    def linear_format(self, parts: Sequence[SourceTensor]) -> LinearFormat:
        """One format for all parts of a fused tensor: the widest that any of them needs."""
        if self.requested != AUTOMATIC:
            return linear_format(self.requested)
        wanted = [linear_format(_KEPT.get(part.format, FLOAT_FORMAT)) for part in parts]
        return max(wanted, key=lambda form: form.bits_per_weight)
