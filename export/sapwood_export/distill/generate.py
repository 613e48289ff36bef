"""The target writes: many conversations side by side, one pass over the model for all of them.

Each lane of the batch is a conversation with a stretch of KV slots of its own. A pass takes the
next token of every lane that writes, and a share of the prompts of those that have just begun; a
lane whose conversation is over begins the next one at once. The kernels give a row the same bits
whatever stands beside it, so what a conversation says depends on its seed alone, not on the others.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np

from sapwood import _runtime
from sapwood_export.distill.conversations import Ask, Reply, Script
from sapwood_export.distill.shards import Text

PROMPT_ROWS = 96  # of a pass: more would make those wait that write
_LEAST_ROOM = 16  # tokens of an answer that must fit, or the conversation ends
_LEAST_WRITTEN = 4  # tokens, for a text to be kept
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
    ask: Ask | None  # the latest; None: it was the last
    texts: list[Text] = field(default_factory=list)
    tokens: list[int] = field(default_factory=list)  # of the text
    computed: int = 0  # of them
    start: int = 0  # first token that the target wrote
    begun: int = 0  # where the answer being written begins
    limit: int = 0  # where it ends at the latest
    over: bool = False  # nothing more is written; the last token's hidden state may be missing
    worth_keeping: bool = True
    temperature: float = 0.0  # of the latest answer


def loop_begin(tokens: Sequence[int]) -> int | None:
    """Where ``tokens`` begin to repeat what they have just said, to their end; None if they do not.

    A loop is at least three rounds of up to 72 tokens, and 24 tokens in all. What comes before the
    place returned holds one whole round.
    """
    end = len(tokens)
    for period in range(1, min(_LONGEST_PERIOD, end // 3) + 1):
        span = max(2 * period, 24)
        if (
            span + period > end
            or tokens[end - span :] != tokens[end - span - period : end - period]
        ):
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
        self._hidden = np.zeros((lanes, capacity, len(layers), spec.hidden_size), np.float16)
        self._flat_hidden = self._hidden.reshape(lanes * capacity, len(layers), spec.hidden_size)
        self._samplers = [_runtime.Sampler(spec.vocabulary_size) for _ in range(lanes)]
        self._prompt_rows = min(PROMPT_ROWS, model.max_rows - lanes)
        self.passes = 0
        self.rows = 0
        self.looped = 0

    def run(self, jobs: Iterator[Job]) -> Iterator[list[tuple[int, list[Text]]]]:
        """After every pass, the numbers of the jobs that are done, with their texts."""
        lanes: list[_Lane] = []
        free = list(range(len(self._samplers)))
        while True:
            while free and (job := next(jobs, None)) is not None:
                lanes.append(self._begin(free.pop(), job))
            if not lanes:
                return
            self._forward(lanes)
            done = []
            for lane in lanes:
                if lane.over and lane.computed == len(lane.tokens) and self._next_text(lane):
                    done.append(lane)
            for lane in done:
                lanes.remove(lane)
                free.append(lane.index)
            yield [(lane.job.number, lane.texts) for lane in done]

    def _begin(self, index: int, job: Job) -> _Lane:
        lane = _Lane(index, self._samplers[index], job, next(job.script))
        lane.over = not self._extend(lane)
        return lane

    def _extend(self, lane: _Lane) -> bool:
        """Adds what the lane's script asks for; False if there is no room for it."""
        ask = lane.ask
        assert ask is not None
        before = len(lane.tokens) + len(ask.tokens)
        limit = min(before + ask.longest, self._capacity - 1)
        if limit < before + _LEAST_ROOM:
            return False
        if not lane.tokens:
            lane.start = before
        lane.tokens += ask.tokens
        lane.begun, lane.limit, lane.temperature = before, limit, ask.temperature
        options = _runtime.SamplingOptions(
            temperature=ask.temperature, seed=lane.job.seed ^ len(lane.texts)
        )
        lane.sampler.start(options)
        return True

    def _forward(self, lanes: Sequence[_Lane]) -> None:
        room = self._prompt_rows
        batch: list[tuple[_Lane, int]] = []  # lane, rows
        for lane in lanes:
            pending = len(lane.tokens) - lane.computed
            taken = pending if pending <= 1 else min(pending, room)
            if pending > 1:
                room -= taken
            if taken:
                batch.append((lane, taken))
        if not batch:
            return
        # Prompts first: their rows share what they see by blocks of eight.
        batch.sort(key=lambda part: -part[1])
        tokens: list[int] = []
        slots: list[int] = []
        begins: list[int] = []
        outputs: list[int] = []
        positions: list[int] = []
        writers: list[_Lane] = []
        for lane, taken in batch:
            first = lane.index * self._capacity
            stretch = range(lane.computed, lane.computed + taken)
            tokens += lane.tokens[lane.computed : lane.computed + taken]
            positions += stretch
            slots += range(first + lane.computed, first + lane.computed + taken)
            begins += [first] * taken
            lane.computed += taken
            if lane.computed == len(lane.tokens) and not lane.over:
                outputs.append(len(tokens) - 1)
                writers.append(lane)
        logits = self._model.forward(
            self._kv,
            tokens=tokens,
            positions=positions,
            slots=slots,
            context_slots=[],
            path_slots=self._slots,
            path_begin=begins,
            path_end=[slot + 1 for slot in slots],
            output_rows=outputs,
        )
        hidden = self._model.hidden_states()
        self._flat_hidden[slots] = np.clip(hidden, -_HALF_MAX, _HALF_MAX)
        self.passes += 1
        self.rows += len(tokens)
        for lane, row in zip(writers, logits, strict=True):
            self._write(lane, lane.sampler.choose(row, len(lane.tokens)))

    def _write(self, lane: _Lane, token: int) -> None:
        """Takes the target's next token of a lane."""
        if token in self._end:
            self._answered(lane, ended_by=token)
            return
        lane.tokens.append(token)
        written = len(lane.tokens) - lane.begun
        if (
            written % _LOOP_EVERY == 0
            and (repeated := loop_begin(lane.tokens[lane.begun :])) is not None
        ):
            del lane.tokens[lane.begun + repeated :]
            lane.computed = min(lane.computed, len(lane.tokens))
            self.looped += 1
            self._answered(lane, ended_by=None)
        elif len(lane.tokens) >= lane.limit:
            self._answered(lane, ended_by=None)

    def _answered(self, lane: _Lane, ended_by: int | None) -> None:
        reply = Reply(lane.tokens[lane.begun :], ended_by is not None)
        try:
            lane.ask = lane.job.script.send(reply)
        except StopIteration as end:
            lane.ask, lane.worth_keeping = None, bool(end.value)
        else:
            if not lane.ask.new and self._extend(lane):
                return
            if not lane.ask.new:
                lane.ask = None
        # The text is over; what is left is the hidden state of its last token.
        if ended_by is not None:
            lane.tokens.append(ended_by)
        lane.over = True

    def _next_text(self, lane: _Lane) -> bool:
        """Takes in a lane's text. Returns whether that was its last."""
        if lane.worth_keeping and len(lane.tokens) - lane.start >= _LEAST_WRITTEN:
            lane.texts.append(
                Text(
                    np.array(lane.tokens, dtype=np.int32),
                    lane.start,
                    lane.job.category,
                    lane.temperature,
                    self._hidden[lane.index, : len(lane.tokens)].copy(),
                )
            )
        if lane.ask is None:
            return True
        lane.tokens, lane.computed, lane.over = [], 0, False
        return not self._extend(lane)
