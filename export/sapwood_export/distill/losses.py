"""Cross-entropy against the target's soft labels over a subset of the vocabulary.

A label is the target's softmax restricted to the subset and scaled up to one: what the target does
outside, the draft cannot say. With 4,096 entries of 49,152 that is about a hundredth of the mass.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor
from torch.nn import functional

_CHUNK_LOGITS = 1 << 21  # float32 logits held at a time: they stay in the last-level cache


@dataclass(frozen=True)
class Agreement:
    """How draft and target compare, row by row, within the subset."""

    same_top: Tensor  # float32 [rows], 1 where both find the same token most probable
    overlap: Tensor  # float32 [rows], sum of min(p, q)


class _SoftCrossEntropy(torch.autograd.Function):
    """Logits, softmax and their gradient by chunks of rows: [rows, subset] is never in memory."""

    @staticmethod
    def forward(
        context: Any,
        states: Tensor,
        head: Tensor,
        label_states: Tensor,
        label_head: Tensor,
    ) -> tuple[Tensor, Tensor, Tensor]:
        rows, subset = states.shape[0], head.shape[0]
        step = max(1, _CHUNK_LOGITS // subset)
        train_head = context.needs_input_grad[1]
        state_gradient = torch.empty_like(states)
        head_gradient = torch.zeros_like(head, dtype=torch.float32) if train_head else None
        total = states.new_zeros((), dtype=torch.float32)
        same_top, overlap = (states.new_empty(rows, dtype=torch.float32) for _ in range(2))
        for begin in range(0, rows, step):
            here = slice(begin, begin + step)
            p = torch.softmax((label_states[here] @ label_head.T).float(), dim=-1)
            log_q = functional.log_softmax((states[here] @ head.T).float(), dim=-1)
            total -= torch.dot(p.view(-1), log_q.view(-1))
            q = log_q.exp_()
            same_top[here] = (p.argmax(-1) == q.argmax(-1)).float()
            difference = q - p
            # sum of min(p, q) = 1 - half of the sum of |q - p|
            overlap[here] = 1 - difference.abs().sum(-1) / 2
            difference = difference.to(states.dtype)
            state_gradient[here] = difference @ head
            if head_gradient is not None:
                head_gradient += (difference.T @ states[here]).float()
        scale = 1 / rows
        context.save_for_backward(state_gradient, head_gradient)
        context.scale = scale
        context.mark_non_differentiable(same_top, overlap)
        return total * scale, same_top, overlap

    @staticmethod
    def backward(context: Any, gradient: Tensor, *_: Any) -> tuple[Tensor | None, ...]:
        state_gradient, head_gradient = context.saved_tensors
        scale = float(gradient) * context.scale
        if head_gradient is not None:
            head_gradient = head_gradient * scale
        return state_gradient * scale, head_gradient, None, None


def soft_cross_entropy(
    states: Tensor, head: Tensor, label_states: Tensor, label_head: Tensor
) -> tuple[Tensor, Agreement]:
    """Mean cross-entropy of softmax(states head^T) under softmax(label_states label_head^T).

    States are [rows, h] after their norms, heads [subset, h]; all in one precision.
    """
    loss, same_top, overlap = _SoftCrossEntropy.apply(  # type: ignore[no-untyped-call]
        states, head, label_states, label_head
    )
    return loss, Agreement(same_top, overlap)


def mean(values: Sequence[Tensor]) -> float:
    """The mean over all rows of all tensors; 0 without rows."""
    rows = sum(value.numel() for value in values)
    return float(sum(value.sum() for value in values)) / max(1, rows)
