"""From trained weights to a draft folder: packing, figures, uncertainty network, card."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import asdict
from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor

from sapwood.errors import SapwoodError
from sapwood_export.bundle import read_manifest
from sapwood_export.distill.card import card
from sapwood_export.distill.draft_folder import DraftFormats, DraftWeights, write_draft
from sapwood_export.distill.drafts import lowered
from sapwood_export.distill.evaluate import Comparison, batches_of, compare, figures
from sapwood_export.distill.initialise import read_head
from sapwood_export.distill.shards import open_shard, read_data_file, shard_names
from sapwood_export.distill.training import Training
from sapwood_export.distill.uncertainty import (
    expected_calibration_error,
    fit_uncertainty,
    predicted_rejection,
)
from sapwood_export.distill.vocabulary import (
    FirstOccurrences,
    SubsetChoice,
    best_size,
    measured_cost,
    most_frequent,
    weigh_sizes,
)
from sapwood_export.distill.windows import FITTED, MEASURED, Batch
from sapwood_export.quantize.round_to_nearest import quantize

_MEASURED_ROWS = 6_000
_FITTED_ROWS = 12_000  # each gives a state of every depth


def finish(training: Training, out: Path, graph: bool = False) -> dict[str, Any]:
    """Writes the draft folder ``out``, with ``draft.onnx`` if ``graph``. Returns what its manifest
    says of the training.

    The uncertainty network is fitted to the packed weights, which are what runs.
    """
    formats = training.formats
    choices, ids = choose_subset(training)
    plain = training.trained_weights()
    plain["head"] = read_head(training.bundle, training.spec)[ids]
    packed = dequantised(plain, formats)

    def compared(weights: dict[str, Tensor], part: str, rows: int) -> list[list[Comparison]]:
        return compare_with_target(training, weights, ids, training.batches(part), rows)

    unpacked = compared(plain, MEASURED, _MEASURED_ROWS)
    measured = compared(packed, MEASURED, _MEASURED_ROWS)
    if not measured:
        raise SapwoodError(
            f"{training.data}: no text is held out to measure the draft on; let the target write "
            "more (--tokens, --minutes)"
        )
    # So few conversations that none is held out for fitting: those that measure have to do.
    fitted = compared(packed, FITTED, _FITTED_ROWS) or measured
    tensors = fit_uncertainty(*_states_and_rejection(fitted), seed=training.options.seed)
    states, rejection = _states_and_rejection(measured)
    error = expected_calibration_error(predicted_rejection(tensors, states), rejection)
    record: dict[str, Any] = {
        "seed": training.options.seed,
        "tokens": training.tokens,
        "steps": training.steps,
        "minutes": round(training.minutes, 1),
        "options": asdict(training.options),
        "data": read_data_file(training.data),
        "subset_sizes": [asdict(choice) for choice in choices],
        "held_out": {
            "by_depth": [asdict(depth) for depth in figures(measured)],
            "before_packing": [asdict(depth) for depth in figures(unpacked)],
            "uncertainty_calibration_error": round(error, 4),
        },
    }
    name = read_manifest(training.bundle)["name"]
    weights = DraftWeights(
        kind=training.options.kind,
        feature_layers=training.feature_layers,
        vocabulary_ids=ids.numpy().astype(np.int32),
        tensors={name: tensor.numpy() for name, tensor in (plain | tensors).items()},
    )
    told = card(name, weights, record)
    write_draft(out, training.bundle, name, weights, formats, record, told, graph)
    return record


def choose_subset(training: Training) -> tuple[list[SubsetChoice], Tensor]:
    """The sizes that were weighed, and the ids of the best, or of the size asked for."""
    shards = (open_shard(training.data, name) for name in shard_names(training.data))
    occurrences = FirstOccurrences.of(shards, training.spec.vocabulary_size)
    choices = weigh_sizes(training.spec, occurrences, measured_cost)
    size = min(training.options.subset or best_size(choices), training.spec.vocabulary_size)
    return choices, torch.from_numpy(most_frequent(occurrences.counts, size)).to(torch.int64)


def dequantised(weights: dict[str, Tensor], formats: DraftFormats) -> dict[str, Tensor]:
    """The weights with the values that they have once packed."""
    result = dict(weights)
    for name, tensor in weights.items():
        if tensor.dim() == 2:
            form = formats.of(name)
            result[name] = torch.from_numpy(quantize(tensor.numpy(), form).dequantize(form))
    return result


def compare_with_target(
    training: Training,
    weights: dict[str, Tensor],
    vocabulary_ids: Tensor,
    batches: Iterable[Batch],
    rows: int,
) -> list[list[Comparison]]:
    """Batches of about so many rows, compared with the target side by side.

    ``weights`` have the rows of "head" that ``vocabulary_ids`` names.
    """
    options = training.options
    used = lowered(weights, training.precision)

    def one(batch: Batch) -> list[Comparison]:
        return compare(
            options.kind,
            training.spec,
            used,
            vocabulary_ids,
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
