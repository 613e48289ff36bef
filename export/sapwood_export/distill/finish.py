"""From trained weights to a draft folder: packing, figures, uncertainty network, card."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from sapwood_export.bundle import read_manifest
from sapwood_export.distill.card import card
from sapwood_export.distill.draft_folder import DraftFormats, DraftWeights, write_draft
from sapwood_export.distill.drafts import lowered
from sapwood_export.distill.evaluate import Comparison, batches_of, compare, figures
from sapwood_export.distill.shards import read_data_file
from sapwood_export.distill.training import Training
from sapwood_export.distill.uncertainty import (
    expected_calibration_error,
    fit_uncertainty,
    predicted_rejection,
)
from sapwood_export.distill.windows import Batch
from sapwood_export.quantize.formats import linear_format
from sapwood_export.quantize.round_to_nearest import quantize

_HELD_OUT_ROWS = 6_000
_UNCERTAINTY_ROWS = 10_000  # each gives a state of every depth


def finish(training: Training, out: Path, formats: DraftFormats | None = None) -> dict[str, Any]:
    """Writes the draft folder ``out``. Returns what its manifest says of the training.

    The uncertainty network is fitted to the packed weights, which are what runs.
    """
    formats = formats or DraftFormats()
    plain = {name: tensor.detach() for name, tensor in training.weights.items()}
    packed = dequantised(plain, formats)
    unpacked_figures = figures(_compare(training, plain, training.held_out(), _HELD_OUT_ROWS))
    held_out = _compare(training, packed, training.held_out(), _HELD_OUT_ROWS)
    by_depth = figures(held_out)
    seen = _compare(training, packed, training.batches(), _UNCERTAINTY_ROWS)
    tensors = fit_uncertainty(*_states_and_rejection(seen), seed=training.options.seed)
    states, rejection = _states_and_rejection(held_out)
    error = expected_calibration_error(predicted_rejection(tensors, states), rejection)
    record: dict[str, Any] = {
        "seed": training.options.seed,
        "tokens": training.tokens,
        "steps": training.steps,
        "minutes": round(training.minutes, 1),
        "options": asdict(training.options),
        "data": read_data_file(training.data),
        "subset_sizes": training.choices,
        "held_out": {
            "by_depth": [asdict(depth) for depth in by_depth],
            "before_packing": [asdict(depth) for depth in unpacked_figures],
            "uncertainty_calibration_error": round(error, 4),
        },
    }
    name = read_manifest(training.bundle)["name"]
    weights = DraftWeights(
        kind=training.options.kind,
        feature_layers=training.feature_layers,
        vocabulary_ids=training.vocabulary_ids.numpy().astype(np.int32),
        tensors={name: tensor.numpy() for name, tensor in (plain | tensors).items()},
    )
    write_draft(out, training.bundle, name, weights, formats, record, card(name, weights, record))
    return record


def dequantised(weights: dict[str, Tensor], formats: DraftFormats) -> dict[str, Tensor]:
    """The weights with the values that they have once packed."""
    result = dict(weights)
    for name, tensor in weights.items():
        if tensor.dim() == 2:
            form = linear_format(formats.of(name))
            result[name] = torch.from_numpy(quantize(tensor.numpy(), form).dequantize(form))
    return result


def _compare(
    training: Training, weights: dict[str, Tensor], batches: Iterable[Batch], rows: int
) -> list[list[Comparison]]:
    """Batches of about so many rows, compared with the target side by side."""
    options = training.options
    used = lowered(weights, training.precision)

    def one(batch: Batch) -> list[Comparison]:
        return compare(
            options.kind,
            training.spec,
            used,
            training.vocabulary_ids,
            training.target,
            batch,
            options.depths,
        )

    return [depths for depths in training.workers.map(one, batches_of(batches, rows)) if depths]


def _states_and_rejection(comparisons: list[list[Comparison]]) -> tuple[Tensor, Tensor]:
    """States [n, h] of all depths, and the probability that a sample of each is rejected [n]."""
    flat = [depth for batch in comparisons for depth in batch]
    states = torch.cat([depth.states for depth in flat])
    return states, 1 - torch.cat([depth.overlap for depth in flat]).clamp(0, 1)
