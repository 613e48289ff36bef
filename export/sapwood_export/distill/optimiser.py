"""What turns gradients into steps: Muon for matrices, AdamW for the rest, one schedule for both."""

from __future__ import annotations

from collections.abc import Mapping
from concurrent.futures import Executor
from typing import Any

import torch
from torch import Tensor

WARM_UP_STEPS = 60

_NEWTON_SCHULZ_STEPS = 3  # of Muon; five cost a third of a small batch


def learning_rate_share(step: int, decay: float) -> float:
    """Warm-up, stable, decay (Hu et al. 2024, MiniCPM): the stable part can go on for as long as
    there is time, and a short decay makes a draft of it whenever it is to end.

    ``decay`` is the share of the decay that is over, 0 before it begins.
    """
    return min(1.0, (step + 1) / WARM_UP_STEPS) * (1 - decay)


class Optimiser:
    """Muon (Jordan et al. 2024), with updates as large as AdamW's (Liu et al. 2025, "Muon is
    scalable for LLM training"), for matrices; AdamW (Loshchilov & Hutter 2019) for norms, biases
    and the head, whose rows are tokens.

    Every matrix has an optimiser of its own, so that they can step side by side.
    """

    def __init__(
        self, weights: Mapping[str, Tensor], *, muon_rate: float, adam_rate: float
    ) -> None:
        self._parts: list[tuple[torch.optim.Optimizer, float]] = []
        others = []
        for name, weight in weights.items():
            if weight.dim() != 2 or name == "head":
                others.append(weight)
                continue
            muon = torch.optim.Muon(
                [weight],
                lr=muon_rate,
                weight_decay=0.0,
                ns_steps=_NEWTON_SCHULZ_STEPS,
                adjust_lr_fn="match_rms_adamw",
            )
            self._parts.append((muon, muon_rate))
        adam = torch.optim.AdamW(others, lr=adam_rate, betas=(0.9, 0.95), weight_decay=0.0)
        self._parts.append((adam, adam_rate))

    def step(self, share: float, workers: Executor) -> None:
        """One step at ``share`` of the full learning rates."""

        def one(part: tuple[torch.optim.Optimizer, float]) -> None:
            optimiser, rate = part
            for group in optimiser.param_groups:
                group["lr"] = rate * share
            optimiser.step()

        list(workers.map(one, self._parts))

    def state(self) -> list[Any]:
        return [optimiser.state_dict() for optimiser, _ in self._parts]

    def restore(self, state: list[Any]) -> None:
        for (optimiser, _), part in zip(self._parts, state, strict=True):
            optimiser.load_state_dict(part)
