"""The target writes: many conversations side by side, one pass over the model for all of them.

Each lane of the batch is a conversation with a stretch of KV slots of its own. A pass takes the next
token of every lane that writes, and a share of the prompts of those that have just begun; a lane
whose conversation is over begins the next one at once. The kernels give a row the same bits
whatever stands beside it, so what a conversation says depends on its seed alone, not on the others.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from sapwood import _runtime
from sapwood_export.distill.conversations import Ask, Reply, Script
from sapwood_export.distill.shards import Text

PROMPT_ROWS = 96  # of a pass: more would make those wait that write
_LEAST_ANSWER = 16  # tokens that must fit, or the conversation ends
_LOOP_EVERY = 16  # tokens between two looks for a loop
_LONGEST_PERIOD = 72
_HALF_MAX = float(np.finfo(np.float16).max)


@dataclass(frozen=True)
class Job:
    """A conversation to be held."""

    number: int
    category: int
    script: Script
    seed: int  # of its draws


@dataclass
class _Lane:
    """A conversation being held."""

    index: int
    sampler: _runtime.Sampler
    job: Job
    ask: Ask
    texts: list[Text] = field(default_factory=list)
    tokens: list[int] = field(default_factory=list)  # of the text
    computed: int = 0  # of them
    start: int = 0  # first token that the target wrote
    begun: int = 0  # where the answer being written begins
    limit: int = 0  # where it ends at the latest
    last: bool = False  # its last token is being computed, for its hidden state only
    temperature: float = 0.0  # of the latest answer


def loop_begin(tokens: Sequence[int]) -> int | None:
    """Where ``tokens`` begin to repeat what they have just said, to their end; None if they do not.

    A loop is at least three rounds of up to 72 tokens, and 24 tokens in all. What comes before the
    place returned holds one whole round.
    """
    end = len(tokens)
    for period in range(1, min(_LONGEST_PERIOD, end // 3) + 1):
        span = max(2 * period, 24)
        if span + period > end or tokens[end - span :] != tokens[end - span - period : end - period]:
            continue
        begin = end - span
        while begin > period and tokens[begin - 1] == tokens[begin - 1 - period]:
            begin -= 1
        return begin
    return None


class Generation:
    """Holds conversations, ``lanes`` at a time, each of at most ``capacity`` tokens.

    ``layers``: whose outputs are kept, ascending, counted from 1.
    """

    def __init__(
        self,
        model: _runtime.Model,
        *,
        layers: Sequence[int],
        end_tokens: Iterable[int],
        lanes: int,
        capacity: int,
    ) -> None:
        spec = model.spec
        self._model = model
        self._end = frozenset(end_tokens)
        self._capacity = capacity
        model.keep_hidden_states(list(layers))
        self._kv = _runtime.KvStore.create(
            spec.layers, spec.kv_heads, spec.head_dim, lanes * capacity
        )
        # Every lane's path is a part of this one: its slots follow each other.
        self._slots = list(range(lanes * capacity))
        self._hidden = np.zeros(
            (lanes, capacity, len(layers), spec.hidden_size), dtype=np.float16
        )
        self._samplers = [_runtime.Sampler(spec.vocabulary_size) for _ in range(lanes)]
        self._prompt_rows = min(PROMPT_ROWS, model.max_rows - lanes)
        self.passes = 0
        self.rows = 0
        self.looped = 0

    def run(self, jobs: Iterator[Job], stop: Callable[[], bool]) -> Iterator[tuple[int, list[Text]]]:
        """Job numbers and their texts as they finish, in any order, until ``stop`` or the end."""
        lanes: list[_Lane] = []
        free = list(range(len(self._samplers)))
        while not stop():
            while free and (job := next(jobs, None)) is not None:
                lanes.append(self._begin(free.pop(), job))
            if not lanes:
                return
            finished = self._pass(lanes)
            for lane in finished:
                lanes.remove(lane)
                free.append(lane.index)
                yield lane.job.number, lane.texts

    def _begin(self, index: int, job: Job) -> _Lane:
        lane = _Lane(index, self._samplers[index], job, next(job.script))
        self._extend(lane)
        return lane

    def _extend(self, lane: _Lane) -> bool:
        """Adds what the lane's script asks for; False if there is no room for it."""
        ask = lane.ask
        if ask.new and lane.tokens:
            self._keep(lane)
            lane.tokens, lane.computed = [], 0
        limit = min(len(lane.tokens) + len(ask.tokens) + ask.longest, self._capacity - 1)
        if limit < len(lane.tokens) + len(ask.tokens) + _LEAST_ANSWER:
            return False
        if not lane.tokens:
            lane.start = len(ask.tokens)
        lane.tokens += ask.tokens
        lane.begun, lane.limit, lane.temperature = len(lane.tokens), limit, ask.temperature
        lane.sampler.start(
            _runtime.SamplingOptions(
                temperature=ask.temperature, seed=lane.job.seed ^ len(lane.texts)
            )
        )
        return True
