"""Training batches from shards: windows of rows, short sequences packed side by side."""

from __future__ import annotations

import copy
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from sapwood.errors import SapwoodError
from sapwood_export.distill.head import HeadInputs
from sapwood_export.distill.shards import Shard, open_shard, shard_names
from sapwood_export.models.decoder import rotary_table

HELD_OUT_EVERY = 24  # one sequence in so many is never trained on

# What the sequences of a shard are for. A network that says how often the draft is wrong has to be
# fitted to text that the draft was not trained on, where it is wrong as often as anywhere.
TRAINED = "trained"
FITTED = "fitted"
MEASURED = "measured"


@dataclass(frozen=True)
class Piece:
    """Consecutive rows of one sequence. Row i reads token i + 1 and foretells token i + 2."""

    shard: Shard
    begin: int  # first row's token in the shard
    rows: int
    position: int  # of the first row in its sequence
    counted_from: int  # first row of the piece whose foretold token the target wrote


Window = list[Piece]


def sequences(shard: Shard, part: str) -> list[int]:
    """Those of a part: TRAINED, or one of the two that are held out, FITTED and MEASURED."""

    def part_of(sequence: int) -> str:
        number, rest = divmod(sequence, HELD_OUT_EVERY)
        return TRAINED if rest else (MEASURED, FITTED)[number % 2]

    return [i for i in range(len(shard.offsets) - 1) if part_of(i) == part]


def windows(shard: Shard, chosen: Sequence[int], rows: int) -> Iterator[Window]:
    """The chosen sequences in that order, in windows of at most ``rows`` rows."""
    window: Window = []
    free = rows
    for sequence in chosen:
        begin, end = (int(offset) for offset in shard.offsets[sequence : sequence + 2])
        position, last = 0, end - begin - 1  # the last token has no next one to read
        counted = max(0, int(shard.start[sequence]) - 2)
        while position < last:
            if free == 0:
                yield window
                window, free = [], rows
            taken = min(free, last - position)
            window.append(
                Piece(shard, begin + position, taken, position, max(0, counted - position))
            )
            position += taken
            free -= taken
    if window:
        yield window


@dataclass(frozen=True)
class Batch:
    """B windows of T rows: what the head reads, what it is compared with, and which rows count."""

    inputs: HeadInputs
    tokens: Tensor  # int64 [B, T], x_{i+1}; 0 in rows that mean nothing
    final: Tensor  # [B, T, h], the target's last hidden state of position i + 1: the label
    counted: Tensor  # bool [B, T]
    depth: (
        Tensor  # int64 [B, T], rows of the same piece before this one: how deep it can be drafted
    )

    def to(self, device: torch.device) -> Batch:
        """The same batch there; itself where it is already."""
        inputs = HeadInputs(*(tensor.to(device) for tensor in vars(self.inputs).values()))
        others = (self.tokens, self.final, self.counted, self.depth)
        return Batch(inputs, *(tensor.to(device) for tensor in others))

    def rows(self, step: int) -> Tensor:
        """Flat indices of the rows of an unrolled step that mean something and count."""
        return (self.counted & (self.depth >= step)).flatten().nonzero().squeeze(-1)


@dataclass(frozen=True)
class Assembler:
    """Turns windows into batches for one target."""

    embedding: Tensor  # [vocabulary, h]
    embedding_scale: float
    inverse_frequencies: Tensor  # [head_dim / 2]
    features: tuple[int, ...]  # indices among the kept layers
    precision: torch.dtype
    rows: int  # T
    _causal: Tensor = field(init=False)

    def __post_init__(self) -> None:
        mask = torch.ones(self.rows, self.rows, dtype=torch.bool).tril()
        object.__setattr__(self, "_causal", mask)

    def batch(self, chosen: Sequence[Window]) -> Batch:
        shape = (len(chosen), self.rows)
        hidden = self.embedding.shape[1]
        tokens = np.zeros(shape, dtype=np.int64)
        positions = np.zeros(shape, dtype=np.int32)
        sequence = np.full(shape, -1, dtype=np.int32)
        depth = np.zeros(shape, dtype=np.int64)
        counted = np.zeros(shape, dtype=bool)
        features = np.zeros((*shape, len(self.features), hidden), dtype=np.float16)
        final = np.zeros((*shape, hidden), dtype=np.float16)
        for index, window in enumerate(chosen):
            at = 0
            for number, piece in enumerate(window):
                here = (index, slice(at, at + piece.rows))
                span = piece.shard.hidden[piece.begin : piece.begin + piece.rows + 1]
                tokens[here] = piece.shard.tokens[piece.begin + 1 : piece.begin + piece.rows + 1]
                features[here] = span[:-1, list(self.features)]
                final[here] = span[1:, -1]
                depth[here] = np.arange(piece.rows)
                positions[here] = piece.position + depth[here]
                counted[here] = depth[here] >= piece.counted_from
                sequence[here] = number
                at += piece.rows
        same = torch.from_numpy(sequence)
        rotary = rotary_table(torch.from_numpy(positions).flatten(), self.inverse_frequencies)
        embedded = self.embedding[torch.from_numpy(tokens)] * self.embedding_scale
        inputs = HeadInputs(
            embedded=embedded,
            features=torch.from_numpy(features).flatten(-2).to(self.precision),
            rotary=rotary.view(*shape, -1),
            visible=self._causal & (same[:, :, None] == same[:, None, :]),
        )
        return Batch(
            inputs,
            torch.from_numpy(tokens),
            torch.from_numpy(final),
            torch.from_numpy(counted),
            torch.from_numpy(depth),
        )


@dataclass
class SamplerState:
    """Where a sampler is: enough to go on in the middle of a round."""

    visits: dict[str, int] = field(default_factory=dict)  # by shard
    round_shards: list[str] = field(default_factory=list)
    rounds: int = 0  # begun so far
    taken: int = 0  # windows of this round


class Sampler:
    """Draws windows from the shards that are there, each window once a round.

    A round takes the shards seen least often, all their windows shuffled. A shard that appears
    while training goes on counts as seen as often as those; it joins the next round.
    """

    def __init__(self, folder: Path, rows: int, seed: int) -> None:
        self._folder, self._rows, self._seed = folder, rows, seed
        self._state = SamplerState()
        self._queue: list[Window] = []

    def draw(self, count: int) -> list[Window]:
        """The next ``count`` windows."""
        drawn: list[Window] = []
        while len(drawn) < count:
            taken = self._state.taken
            if taken >= len(self._queue):
                self._next_round()
                continue
            more = self._queue[taken : taken + count - len(drawn)]
            drawn += more
            self._state.taken = taken + len(more)
        return drawn

    def state(self) -> SamplerState:
        return copy.deepcopy(self._state)

    def restore(self, state: SamplerState) -> None:
        self._state = copy.deepcopy(state)
        self._fill()

    def _next_round(self) -> None:
        state = self._state
        fewest = min(state.visits.values(), default=0)
        for name in shard_names(self._folder):
            state.visits.setdefault(name, fewest)
        if not state.visits:
            raise SapwoodError(f"{self._folder}: no training data yet: no shard is finished")
        fewest = min(state.visits.values())
        state.round_shards = [name for name, seen in state.visits.items() if seen == fewest]
        for name in state.round_shards:
            state.visits[name] += 1
        state.rounds += 1
        state.taken = 0
        self._fill()
        if not self._queue:
            raise SapwoodError(f"{self._folder}: the shards hold nothing to train on")

    def _fill(self) -> None:
        generator = np.random.default_rng((self._seed, self._state.rounds))
        self._queue = []
        for name in self._state.round_shards:
            shard = open_shard(self._folder, name)
            chosen = sequences(shard, TRAINED)
            generator.shuffle(chosen)
            self._queue += windows(shard, chosen, self._rows)
        order = generator.permutation(len(self._queue))
        self._queue = [self._queue[index] for index in order]


def windows_of(folder: Path, part: str, rows: int) -> Iterator[Window]:
    """The windows of a part of the data, shard by shard."""
    for name in shard_names(folder):
        shard = open_shard(folder, name)
        yield from windows(shard, sequences(shard, part), rows)
