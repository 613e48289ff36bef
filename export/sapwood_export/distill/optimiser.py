"""What turns gradients into steps: AdamW under a schedule that can be stopped at any time."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor

WARM_UP_STEPS = 30


def learning_rate_share(step: int, decay: float) -> float:
    """Warm-up, stable, decay (Hu et al. 2024, MiniCPM): the stable part can go on for as long as
    there is time, and a short decay makes a draft of it whenever it is to end.

    ``decay`` is the share of the decay that is over, 0 before it begins.
    """
    return min(1.0, (step + 1) / WARM_UP_STEPS) * (1 - decay)


class Optimiser:
    """AdamW (Loshchilov & Hutter 2019).

    Muon (Jordan et al. 2024) was tried: at batches of 2,048 rows its orthogonalisation takes as
    long as the gradients, and what it gains a step it loses a minute.
    """

    def __init__(self, weights: Sequence[Tensor], rate: float) -> None:
        self._rate = rate
        self._adam = torch.optim.AdamW(
            weights, lr=rate, betas=(0.9, 0.95), weight_decay=0.0, fused=True
        )

    def step(self, share: float) -> None:
        """One step at ``share`` of the full learning rate."""
        for group in self._adam.param_groups:
            group["lr"] = self._rate * share
        self._adam.step()

    def state(self) -> dict[str, Any]:
        return self._adam.state_dict()

    def restore(self, state: dict[str, Any]) -> None:
        self._adam.load_state_dict(state)
