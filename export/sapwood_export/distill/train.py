"""Training of a draft: from shards of the target's own text to a draft folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch

from sapwood_export.distill import checkpoint
from sapwood_export.distill.finish import finish
from sapwood_export.distill.training import Report, Training, TrainingOptions

__all__ = ["Report", "TrainingOptions", "train"]


def train(
    bundle: Path,
    data: Path,
    checkpoints: Path,
    out: Path,
    options: TrainingOptions,
    report: Report,
    graph: bool = False,
) -> dict[str, Any]:
    """Trains on the shards in ``data``, going on from the checkpoint in ``checkpoints`` if there is
    one, and writes the draft folder ``out``, with ``draft.onnx`` if ``graph``. Returns what the
    manifest says of the training.

    New shards join as they appear. Stopped at any time, it loses at most what came after the last
    checkpoint. Memory is bounded by a batch and the embedding, whatever the amount of data.
    """
    options.check()
    torch.manual_seed(options.seed)
    training = Training(bundle, data, options)
    state = checkpoint.load(checkpoints)
    if state is None:
        report("fitting the first weights")
        training.begin()
    else:
        training.restore(state)
        report(f"going on after {training.tokens:,} tokens")
    training.run(lambda state: checkpoint.save(checkpoints, state), report)
    report("measuring and packing the draft")
    return finish(training, out, graph)
