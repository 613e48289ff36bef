"""Tokens of a text that the draft's subset of the vocabulary lacks.

The runtime gives each of them an entry of its own in the draft's laws as soon as the text holds
it, with the target's row as its weights (runtime_cpp/src/model/text_vocabulary.h): rare in general,
they are not in a text that has them.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
from torch import Tensor

from sapwood_export.distill.windows import Batch


@dataclass(frozen=True)
class TextTokens:
    """The tokens of a batch outside a subset."""

    ids: Tensor  # int64 [E], ascending
    _is_at: Tensor  # float32 [B, T, E], 1 where the row's token is this one
    _visible: Tensor  # bool [B, T, T]

    @staticmethod
    def of(batch: Batch, in_subset: Tensor) -> TextTokens:
        """``in_subset``: bool [vocabulary]."""
        ids = torch.unique(batch.tokens)
        ids = ids[~in_subset[ids]]
        is_at = (batch.tokens[..., None] == ids).float()
        return TextTokens(ids, is_at, batch.inputs.visible)

    def seen(self, rows: Tensor) -> Tensor:
        """Which of them the text holds up to the token that each of these flat rows reads: bool
        [R, E]."""
        window, row = rows // self._is_at.shape[1], rows % self._is_at.shape[1]
        visible = self._visible[window, row].float()
        counts = (visible[:, None, :] @ self._is_at[window]).squeeze(1)
        return counts > 0
