"""The uncertainty network: from the draft's state to the probability of a rejection.

MATH.md's section 3: a = sigmoid(w2 . relu(W1 s + b1) + b2), trained by binary cross-entropy against
1 - sum over x of min(p(x), q(x)), which is the probability that sampling from q is rejected.
It is fitted when the draft is trained, to states of every depth that the draft is used at.
"""

from __future__ import annotations

import torch
from torch import Tensor
from torch.nn import functional

UNITS = 32
_STEPS = 300  # more of them learn the rows by heart
_BATCH = 512
_RATE = 2e-3
_BINS = 15


def fit_uncertainty(
    states: Tensor, rejection: Tensor, *, units: int = UNITS, seed: int = 0
) -> dict[str, Tensor]:
    """The network's tensors, ``uncertainty.w1`` [units, h] and so on, from n rows.

    ``states`` [n, h] are what the draft's head reads, ``rejection`` [n] lies in [0, 1].
    """
    generator = torch.Generator().manual_seed(seed)
    centre, spread = states.mean(0), states.std(0).clamp_min(1e-6)
    x = (states - centre) / spread
    h = states.shape[1]
    w1 = (torch.randn(units, h, generator=generator) / h**0.5).requires_grad_()
    b1 = torch.zeros(units, requires_grad=True)
    w2 = (torch.randn(units, generator=generator) / units**0.5).requires_grad_()
    b2 = torch.logit(rejection.mean().clamp(0.01, 0.99)).reshape(1).requires_grad_()
    optimiser = torch.optim.AdamW([w1, b1, w2, b2], lr=_RATE, weight_decay=0.01)
    schedule = torch.optim.lr_scheduler.LambdaLR(optimiser, lambda step: 1 - step / _STEPS)
    with torch.enable_grad():
        for _ in range(_STEPS):
            rows = torch.randint(len(x), (_BATCH,), generator=generator)
            logits = torch.relu(x[rows] @ w1.T + b1) @ w2 + b2
            loss = functional.binary_cross_entropy_with_logits(logits, rejection[rows])
            optimiser.zero_grad()
            loss.backward()  # type: ignore[no-untyped-call]
            optimiser.step()
            schedule.step()
    # The standardised input goes into the first layer.
    w1, b1 = w1.detach(), b1.detach()
    scaled = w1 / spread
    return {
        "uncertainty.w1": scaled,
        "uncertainty.b1": b1 - scaled @ centre,
        "uncertainty.w2": w2.detach(),
        "uncertainty.b2": b2.detach(),
    }


def predicted_rejection(tensors: dict[str, Tensor], states: Tensor) -> Tensor:
    """a [n] for states [n, h]."""
    units = torch.relu(states @ tensors["uncertainty.w1"].T + tensors["uncertainty.b1"])
    return torch.sigmoid(units @ tensors["uncertainty.w2"] + tensors["uncertainty.b2"])


def expected_calibration_error(predicted: Tensor, observed: Tensor, bins: int = _BINS) -> float:
    """The mean distance of what is predicted from what is observed, over bins of equal width of the
    prediction, by their share of rows (Naeini et al. 2015)."""
    index = (predicted * bins).long().clamp(0, bins - 1)
    error = 0.0
    for one in range(bins):
        here = index == one
        if not here.any():
            continue
        distance = (predicted[here].mean() - observed[here].mean()).abs()
        error += float(distance) * float(here.float().mean())
    return error
