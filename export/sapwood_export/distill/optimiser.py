"""What turns gradients into steps: Muon for matrices, AdamW for the rest, one schedule for both."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

WARM_UP_STEPS = 60


def learning_rate_share(step: int, decay: float) -> float:
    """Warm-up, stable, decay (Hu et al. 2024, MiniCPM): the stable part can go on for as long as
    there is time, and a short decay makes a draft of it whenever it is to end.

    ``decay`` is the share of the decay that is over, 0 before it begins.
    """
    return min(1.0, (step + 1) / WARM_UP_STEPS) * (1 - decay)


class Optimiser:
    """Muon (Jordan et al. 2024), with updates as large as AdamW's (Liu et al. 2025, "Muon is
    scalable for LLM training"), for matrices; AdamW (Loshchilov & Hutter 2019) for norms, biases
    and the head, whose rows are tokens."""

    def __init__(
        self, weights: Mapping[str, Tensor], *, muon_rate: float, adam_rate: float
    ) -> None:
        matrices = [w for name, w in weights.items() if w.dim() == 2 and name != "head"]
        others = [w for name, w in weights.items() if w.dim() != 2 or name == "head"]
        self._parts: list[tuple[torch.optim.Optimizer, float]] = []
        if matrices:
            muon = torch.optim.Muon(
                matrices, lr=muon_rate, weight_decay=0.0, adjust_lr_fn="match_rms_adamw"
            )
            self._parts.append((muon, muon_rate))
        if others:
            adam = torch.optim.AdamW(
                others, lr=adam_rate, betas=(0.9, 0.95), weight_decay=0.0, fused=True
            )
            self._parts.append((adam, adam_rate))

    def step(self, share: float) -> None:
        """One step at ``share`` of the full learning rates; gradients are cleared."""
        for optimiser, rate in self._parts:
            for group in optimiser.param_groups:
                group["lr"] = rate * share
            optimiser.step()
            optimiser.zero_grad(set_to_none=True)

    def state(self) -> list[Any]:
        return [optimiser.state_dict() for optimiser, _ in self._parts]

    def restore(self, state: list[Any]) -> None:
        for (optimiser, _), part in zip(self._parts, state, strict=True):
            optimiser.load_state_dict(part)
