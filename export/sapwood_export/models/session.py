"""A model with its cache: feed it tokens, get logits. For checks, not for speed."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from sapwood_export.models.decoder import Pass, decode
from sapwood_export.models.passes import PassArrays, chain_pass, tree_pass
from sapwood_export.spec import ModelSpec

Logits = NDArray[np.float32]


class SlotSession(ABC):
    """One sequence, its committed tokens in slots 0, 1, 2, ..., whatever runs the passes.

    ``slots`` bounds prefix and tree together.
    """

    def __init__(self, slots: int) -> None:
        self.slots = slots
        self.committed = 0

    @abstractmethod
    def run(self, arrays: PassArrays) -> Logits:
        """Runs any pass and keeps the cache it leaves. Returns logits [O, vocabulary_size]."""

    def extend(self, tokens: Sequence[int]) -> Logits:
        """Commits tokens after the sequence. Returns the logits after each, [len, vocabulary]."""
        end = self.committed + len(tokens)
        if end > self.slots:
            raise ValueError(f"{end} tokens do not fit into {self.slots} slots")
        logits = self.run(chain_pass(tokens, range(self.committed), range(self.committed, end)))
        self.committed = end
        return logits

    def tree(self, tokens: Sequence[int], parents: Sequence[int]) -> Logits:
        """Logits of the nodes of a tree after the sequence; commits nothing."""
        free = range(self.committed, self.committed + len(tokens))
        if free.stop > self.slots:
            raise ValueError(f"a tree of {len(tokens)} nodes does not fit into {self.slots} slots")
        return self.run(tree_pass(tokens, parents, range(self.committed), free))


class DecoderSession(SlotSession):
    """The torch decoder with a float32 cache; ``weights`` are named as in a bundle's manifest."""

    def __init__(self, spec: ModelSpec, weights: Mapping[str, Tensor], slots: int) -> None:
        super().__init__(slots)
        self.spec = spec
        self.weights = weights
        shape = (spec.kv_heads, slots, spec.head_dim)
        self.keys = [torch.zeros(shape) for _ in range(spec.layers)]
        self.values = [torch.zeros(shape) for _ in range(spec.layers)]

    @torch.no_grad()
    def run(self, arrays: PassArrays) -> Logits:
        batch = Pass(**{name: torch.from_numpy(array) for name, array in arrays.named().items()})
        logits, self.keys, self.values = decode(
            self.spec, self.weights, batch, self.keys, self.values
        )
        result: Logits = logits.numpy()
        return result
