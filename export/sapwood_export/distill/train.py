"""Training of a draft: from shards of the target's own text to a draft folder."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

Report = Callable[[str], None]
"""Called with a line on how far the training is."""

KINDS = ("head", "parallel_heads")


@dataclass(frozen=True)
class TrainingOptions:
    """What is trained and for how long. ``minutes`` of this run, or ``tokens`` of all runs."""

    kind: str = "head"
    subset: int | None = None  # entries of the vocabulary; None: by measured cost and coverage
    minutes: float | None = None
    tokens: int | None = None
    seed: int = 0


def train(
    bundle: Path,
    data: Path,
    checkpoints: Path,
    out: Path,
    options: TrainingOptions,
    report: Report,
) -> None:
    """Trains on the shards in ``data``, going on from the latest of ``checkpoints``, and writes the
    draft folder ``out``.

    New shards join as they appear. Stopped at any time, it loses at most what came after the last
    checkpoint.
    """
    raise NotImplementedError
