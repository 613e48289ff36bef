"""A draft in training: weights, optimiser, and the place in the data."""

from __future__ import annotations

import os
import time
from collections.abc import Callable, Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field, replace
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from sapwood.errors import SapwoodError
from sapwood_export.bundle import read_spec
from sapwood_export.distill.draft_folder import HEAD, KINDS, DraftFormats
from sapwood_export.distill.drafts import foretell, lowered
from sapwood_export.distill.evaluate import TargetOutput
from sapwood_export.distill.initialise import (
    fit_inputs,
    initial_weights,
    read_head,
    read_tensor,
)
from sapwood_export.distill.losses import soft_cross_entropy
from sapwood_export.distill.optimiser import Optimiser, learning_rate_share
from sapwood_export.distill.parallel import initial_parallel
from sapwood_export.distill.rounding import rounded
from sapwood_export.distill.shards import kept_layers, open_shard, shard_names
from sapwood_export.distill.text_tokens import TextTokens
from sapwood_export.distill.vocabulary import (
    most_frequent,
    token_counts,
)
from sapwood_export.distill.windows import (
    Assembler,
    Batch,
    Sampler,
    SamplerState,
    Window,
    windows_of,
)


def cuda_is_there() -> bool:
    """Whether torch finds a GPU."""
    return torch.cuda.is_available()


Report = Callable[[str], None]
"""Called with a line on how far the training is."""

CHECKPOINT_SECONDS = 150.0
REPORT_SECONDS = 10.0
DECAY_SHARE = 0.2  # of the run
CPU, CUDA = DEVICES = ("cpu", "cuda")
_FIT_BATCHES = 24


@dataclass(frozen=True)
class TrainingOptions:
    """What is trained, for how long, and how.

    The run ends after ``minutes``, or once all runs together have seen ``tokens``, whichever is
    first. The last ``DECAY_SHARE`` of the run lets the learning rate fall to zero; a later run goes
    on from before that.

    The head matrix stays the target's own. That saves a third of the backward pass, and lets the
    vocabulary of the finished draft be another than the one that the loss runs over.
    """

    kind: str = HEAD
    minutes: float | None = None
    tokens: int | None = None
    seed: int = 0
    subset: int | None = None  # entries of the draft's vocabulary; None: by cost and coverage
    label_subset: int = 4096  # entries that the loss runs over, beside the tokens of the text
    depths: int = 3  # unrolled steps, or parallel heads
    unrolled_every: int = 3  # one batch in so many is unrolled; the others train depth 1
    window: int = 512  # rows
    windows: int = 4  # a batch
    rate: float = 1e-3  # AdamW's
    precision: str = "bfloat16"  # of matrix products
    workers: int = field(default_factory=lambda: os.cpu_count() or 1)  # threads that train on a CPU
    device: str = CPU  # or CUDA

    def check(self) -> None:
        """Refuses what cannot be trained."""
        if self.kind not in KINDS:
            raise SapwoodError(f"unknown kind of draft '{self.kind}'; known are {', '.join(KINDS)}")
        if self.device not in DEVICES:
            raise SapwoodError(f"unknown device '{self.device}'; known are {', '.join(DEVICES)}")
        if self.minutes is None and self.tokens is None:
            raise SapwoodError("how long to train is not said: give minutes or tokens")
        for name in ("minutes", "tokens", "subset", "label_subset", "depths", "windows"):
            value = getattr(self, name)
            if value is not None and value <= 0:
                raise SapwoodError(f"{name} is {value}, must be positive")


@dataclass(frozen=True)
class _Gradients:
    """What a worker makes of its part of a batch."""

    gradients: Sequence[Tensor]  # of the mean over its rows, by trained tensor
    rows: int  # that counted
    same_top: float  # rows whose most probable token is the target's


class Training:
    """A draft in training.

    Each worker is a thread that takes part of a batch through its own operations: they meet once a
    step and not, as torch's own threads, at the end of every product. On a machine with other work
    to do that is twice as fast. A GPU has one worker.

    Weights and optimiser are on the device of the options, and a batch goes there; everything else,
    checkpoints and what a draft is finished from included, stays with the CPU.
    """

    def __init__(self, bundle: Path, data: Path, options: TrainingOptions) -> None:
        self.bundle, self.data, self.options = bundle, data, options
        self.spec = read_spec(bundle)
        self.layers = kept_layers(data)
        self.precision: torch.dtype = getattr(torch, options.precision)
        self.target = TargetOutput(
            read_tensor(bundle, "final_norm"),
            read_head(bundle, self.spec).to(self.precision),
            self.spec.norm_epsilon,
        )
        self.assembler = Assembler(
            embedding=read_tensor(bundle, "embedding"),
            embedding_scale=self.spec.embedding_scale,
            inverse_frequencies=read_tensor(bundle, "rope.global"),
            features=tuple(range(len(self.feature_layers))),
            precision=self.precision,
            rows=options.window,
        )
        self.device = torch.device(options.device)
        self._target_there = self.target.to(self.device)
        self.formats = DraftFormats()
        self.sampler = Sampler(data, options.window, options.seed)
        self.workers = ThreadPoolExecutor(
            options.workers,
            initializer=torch.set_num_threads,
            initargs=(max(1, (os.cpu_count() or 1) // min(options.workers, options.windows)),),
        )
        self.tokens = 0  # rows that counted, of all runs
        self.steps = 0
        self.minutes = 0.0
        self.weights: dict[str, Tensor] = {}

    @property
    def feature_layers(self) -> tuple[int, ...]:
        return self.layers[:-1]

    def begin(self) -> None:
        """The weights before the first step."""
        weights = initial_weights(self.bundle, self.spec, len(self.feature_layers))
        sampler = Sampler(self.data, self.options.window, self.options.seed)
        drawn = (sampler.draw(self.options.windows) for _ in range(_FIT_BATCHES))
        fit_inputs(weights, map(self.assembler.batch, drawn), self.spec.norm_epsilon)
        if self.options.kind != HEAD:
            weights = initial_parallel(weights, self.options.depths)
        self._use_weights(weights)

    def token_counts(self) -> NDArray[np.int64]:
        """How often each token occurs in the data there is by now."""
        texts = (open_shard(self.data, name).tokens for name in shard_names(self.data))
        return token_counts(texts, self.spec.vocabulary_size)

    def state(self) -> dict[str, Any]:
        """A checkpoint's content."""
        return {
            "kind": self.options.kind,
            "weights": self.trained_weights(),
            "optimiser": self._optimiser.state(),
            "sampler": asdict(self.sampler.state()),
            "seed": self.options.seed,
            "steps": self.steps,
            "tokens": self.tokens,
            "minutes": self.minutes,
        }

    def trained_weights(self) -> dict[str, Tensor]:
        """The weights as they are now, on the CPU."""
        return {name: tensor.detach().cpu() for name, tensor in self.weights.items()}

    def restore(self, state: dict[str, Any]) -> None:
        """Goes on from a checkpoint."""
        if state["kind"] != self.options.kind:
            raise SapwoodError(
                f"the checkpoint is of a draft of kind '{state['kind']}', not "
                f"'{self.options.kind}'; use another folder for it"
            )
        self.options = replace(self.options, seed=state["seed"])
        self._use_weights(state["weights"])
        self._optimiser.restore(state["optimiser"])
        self.sampler = Sampler(self.data, self.options.window, self.options.seed)
        self.sampler.restore(SamplerState(**state["sampler"]))
        self.steps, self.tokens = state["steps"], state["tokens"]
        self.minutes = state["minutes"]

    def run(self, save: Callable[[dict[str, Any]], None], report: Report) -> None:
        """Steps until minutes or tokens are over."""
        begin = saved = reported = time.monotonic()
        minutes_before, tokens_before = self.minutes, self.tokens
        recent: list[float] = []
        decaying = False
        while (share := self._share_done(begin, tokens_before)) < 1:
            decay = max(0.0, (share - 1 + DECAY_SHARE) / DECAY_SHARE)
            now = time.monotonic()
            if (decay == 0 and now - saved > CHECKPOINT_SECONDS) or (decay > 0 and not decaying):
                save(self.state())
                saved = now
            decaying = decay > 0
            recent.append(self.step(decay))
            self.minutes = minutes_before + (time.monotonic() - begin) / 60
            if now - reported > REPORT_SECONDS:
                speed = (self.tokens - tokens_before) / (now - begin)
                top = sum(recent[-20:]) / len(recent[-20:])
                report(
                    f"{100 * share:.0f} %  {self.tokens:,} tokens  {speed:,.0f} a second  "
                    f"agreement with the target {top:.3f}"
                )
                reported = now

    def batches(self, part: str) -> Iterator[Batch]:
        """Batches of the part of the data: TRAINED, FITTED or MEASURED."""
        found = windows_of(self.data, part, self.options.window)
        while chosen := list(islice(found, self.options.windows)):
            yield self.assembler.batch(chosen)

    def _share_done(self, begin: float, tokens_before: int) -> float:
        """Of this run, from 0 to 1."""
        done = 0.0
        if self.options.minutes is not None:
            done = (time.monotonic() - begin) / 60 / self.options.minutes
        if self.options.tokens is not None:
            left = self.options.tokens - tokens_before
            done = max(done, (self.tokens - tokens_before) / left if left > 0 else 1.0)
        return done

    def step(self, decay: float = 0.0) -> float:
        """One batch, when so much of the decay is over.

        Returns the share of rows whose most probable token is the target's.
        """
        drawn = self.sampler.draw(self.options.windows)
        workers = 1 if self.device.type == CUDA else min(self.options.workers, len(drawn))
        parts = [drawn[worker::workers] for worker in range(workers)]
        done = list(self.workers.map(self._gradients, parts))
        rows = sum(part.rows for part in done)
        if rows:
            for index, weight in enumerate(self._trained):
                weight.grad = sum(  # type: ignore[assignment]
                    part.gradients[index] * (part.rows / rows) for part in done if part.rows
                )
            self._optimiser.step(learning_rate_share(self.steps, decay))
        self.steps += 1
        self.tokens += rows
        return sum(part.same_top for part in done) / max(1, rows)

    def _gradients(self, drawn: Sequence[Window]) -> _Gradients:
        """Of one worker's part of a batch."""
        batch = self.assembler.batch(drawn).to(self.device)
        rows = int(batch.counted.sum())
        if rows == 0:
            return _Gradients([], 0, 0.0)
        weights = lowered(
            {name: self._rounded(name, weight) for name, weight in self.weights.items()},
            self.precision,
        )
        parallel = self.options.kind != HEAD
        unrolled = parallel or self.steps % self.options.unrolled_every == 0
        depths = self.options.depths if unrolled else 1
        final = batch.final.flatten(0, 1)
        losses, same_top = [], 0.0
        target = self._target_there
        head = target.head[
            torch.cat((self._label_ids, TextTokens.of(batch, self._in_label_ids).ids))
        ]
        ahead = foretell(self.options.kind, self.spec, weights, batch, depths)
        for depth, foretold in enumerate(ahead):
            if not len(foretold.label_rows):
                continue
            loss, agreement = soft_cross_entropy(
                foretold.states.to(self.precision),
                head,
                target.states(final[foretold.label_rows]),
                head,
            )
            losses.append(loss)
            if depth == 0:
                same_top = float(agreement.same_top.sum())
        gradients = torch.autograd.grad(
            torch.stack(losses).mean(), self._trained, allow_unused=True, materialize_grads=True
        )
        return _Gradients(gradients, rows, same_top)

    def _rounded(self, name: str, weight: Tensor) -> Tensor:
        return rounded(weight, self.formats.of(name)) if weight.dim() == 2 else weight

    def _use_weights(self, weights: dict[str, Tensor]) -> None:
        self.weights = {
            name: tensor.to(self.device, copy=True).requires_grad_()
            for name, tensor in weights.items()
        }
        self._trained = list(self.weights.values())
        self._optimiser = Optimiser(self._trained, self.options.rate)
        ids = most_frequent(self.token_counts(), self.options.label_subset)
        self._label_ids = torch.from_numpy(ids).to(self.device, torch.int64)
        self._in_label_ids = torch.zeros(
            self.spec.vocabulary_size, dtype=torch.bool, device=self.device
        )
        self._in_label_ids[self._label_ids] = True
