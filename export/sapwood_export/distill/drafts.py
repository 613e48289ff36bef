"""Both kinds of drafts as training and evaluation see them: states, and rows to compare them at."""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from sapwood_export.distill.draft_folder import HEAD
from sapwood_export.distill.head import Weights, output_states, unrolled_states
from sapwood_export.distill.parallel import parallel_states
from sapwood_export.distill.windows import Batch
from sapwood_export.spec import ModelSpec


@dataclass(frozen=True)
class Foretold:
    """What a draft says of the tokens at one depth."""

    states: Tensor  # float32 [R, h], what the head matrix reads
    label_rows: Tensor  # int64 [R], the flat rows of ``Batch.final`` that say what the target says


def foretell(
    kind: str, spec: ModelSpec, weights: Weights, batch: Batch, depths: int
) -> list[Foretold]:
    """Depths 1 .. ``depths`` along the text of a batch."""
    result = []
    if kind == HEAD:
        for step, state in enumerate(unrolled_states(spec, weights, batch.inputs, depths)):
            rows = batch.rows(step)
            chosen = state.flatten(0, 1)[rows]
            result.append(Foretold(output_states(weights, chosen, spec.norm_epsilon), rows))
        return result
    for step, state in enumerate(parallel_states(spec, weights, batch.inputs, depths)):
        rows = batch.rows(step)
        result.append(Foretold(state.flatten(0, 1)[rows - step], rows))
    return result


def lowered(weights: Weights, precision: torch.dtype) -> dict[str, Tensor]:
    """Matrices in the precision that products are computed in; norms and biases as they are."""
    return {
        name: tensor.to(precision) if tensor.dim() == 2 else tensor
        for name, tensor in weights.items()
    }
