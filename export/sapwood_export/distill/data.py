"""The data stage of distillation: a folder of shards that the target writes by itself.

It can be stopped at any time and goes on where it was: a shard is made of its seeds alone, so what
was not finished comes out the same the next time.
"""

from __future__ import annotations

import fcntl
import itertools
import os
import random
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sapwood import __version__, _runtime
from sapwood.errors import SapwoodError
from sapwood.hosts import open_model
from sapwood.manifest import file_sha256, read_manifest, tokenizer_sha256
from sapwood.options import default_threads
from sapwood.tokenizer import Tokenizer
from sapwood_export.distill.conversations import Turns, converse
from sapwood_export.distill.data_tally import Tally, opening_of
from sapwood_export.distill.generate import Generation, Job
from sapwood_export.distill.seeds_mix import CATEGORIES, FREE, MIX, SeedStream
from sapwood_export.distill.shards import (
    DATA_FILE,
    Text,
    open_shard,
    read_data_file,
    remove_leftovers,
    shard_name,
    shard_names,
    write_data_file,
    write_shard,
)

RECIPE = 1  # of seeds and conversations: shards of two recipes do not mix
CAPACITY = 1024  # tokens of a conversation at most
MOST_LANES = 64
_FEWEST_LANES = 4
_FEWEST_HELD = 16  # conversations of a run, however little time it has: else nothing can be trained
JOBS = sum(MIX.values())  # conversations of a shard


@dataclass(frozen=True)
class DataOptions:
    """How much data, and with what."""

    tokens: int = 2_500_000  # of all shards together
    seed: int = 0
    threads: int | None = None  # None: as many as the machine has cores for
    disk_bytes: int = 15_000_000_000  # that the shards may take
    # For KV caches and hidden states: what fits sets how many conversations are held at once.
    memory_bytes: int = 3_000_000_000


@dataclass(frozen=True)
class DataProgress:
    """Where the data stage stands."""

    tokens: int  # of finished shards and finished conversations
    goal: int
    shards: int
    tokens_per_second: float  # that went through the model; prompts count: they are data too


def feature_layers(layers: int) -> tuple[int, ...]:
    """Low, middle, high and last layer of a target, counted from 1: what its data holds."""
    chosen = (min(3, layers), layers // 2, layers - 3, layers)
    return tuple(sorted({max(1, layer) for layer in chosen}))


def make_data(
    bundle: Path,
    folder: Path,
    options: DataOptions,
    report: Callable[[DataProgress], None],
    stop: Callable[[], bool] = lambda: False,
) -> dict[str, Any]:
    """Has the bundle's target write shards into ``folder`` until there are ``options.tokens``, or
    ``stop`` says so after a few conversations. What other runs finished there counts. Returns what
    data.json holds.

    Raises SapwoodError for a folder with data of another target, seed or recipe, and OSError.
    """
    try:
        folder.mkdir(parents=True, exist_ok=True)
        with _locked(folder):
            remove_leftovers(folder)
            return _Stage(bundle, folder, options, report).run(stop)
    except NotADirectoryError:
        raise SapwoodError(f"{folder}: is not a folder; choose another one for the data") from None


class _Stage:
    """One run over a folder."""

    def __init__(
        self,
        bundle: Path,
        folder: Path,
        options: DataOptions,
        report: Callable[[DataProgress], None],
    ) -> None:
        self._folder, self._options, self._report = folder, options, report
        threads = options.threads or default_threads()
        self._model = open_model(bundle, host="native", threads=threads)
        manifest = read_manifest(bundle)
        self._tokenizer = Tokenizer.from_bundle(bundle, manifest)
        if self._tokenizer.chat_template is None:
            raise SapwoodError(
                f"{bundle}: the bundle has no chat template, so its target cannot write "
                "conversations; export it from a folder with one"
            )
        spec = self._model.spec
        self._layers = feature_layers(spec.layers)
        self._identity = {
            "recipe": RECIPE,
            "seed": options.seed,
            "layers": list(self._layers),
            "target": {
                "name": manifest["name"],
                "family": spec.family,
                "hidden_size": spec.hidden_size,
                "layers": spec.layers,
                "vocabulary_size": spec.vocabulary_size,
                "tokenizer_sha256": tokenizer_sha256(manifest),
                "weights_sha256": file_sha256(manifest, manifest["target"]["weights"]),
            },
            "categories": list(CATEGORIES),
        }
        self._tally = Tally()
        self._openings: set[bytes] = set()
        self._take_in_what_is_there()
        self._waiting: dict[int, dict[int, list[Text]]] = {}  # shard: conversation: texts
        self._waiting_tokens = 0
        self._begun_at = time.monotonic()

    def run(self, stop: Callable[[], bool]) -> dict[str, Any]:
        if not self._enough():
            generation = self._generation()
            looped_before, held = self._tally.looped, 0
            for finished in generation.run(self._jobs()):
                for number, texts in finished:
                    shard, conversation = divmod(number, JOBS)
                    self._waiting.setdefault(shard, {})[conversation] = texts
                    self._waiting_tokens += sum(len(text.tokens) for text in texts)
                self._tally.looped = looped_before + generation.looped
                self._write_whole_shards()
                self._report(self._progress(generation.rows))
                held += len(finished)
                if self._enough() or (held >= _FEWEST_HELD and stop()):
                    break
            # Time or room is up: what is finished counts, the rest of these shards is left out.
            for shard in sorted(self._waiting):
                self._write(shard)
        return self._document()

    def _take_in_what_is_there(self) -> None:
        names = shard_names(self._folder)
        if names or (self._folder / DATA_FILE).exists():
            earlier = read_data_file(self._folder)
            different = [key for key in self._identity if earlier.get(key) != self._identity[key]]
            if different:
                raise SapwoodError(
                    f"{self._folder}: holds data of another {different[0]}; choose another folder, "
                    "or delete this one"
                )
            self._tally.duplicates = int(earlier.get("duplicates_left_out", 0))
            self._tally.looped = int(earlier.get("looped_answers_cut", 0))
        for name in names:
            shard = open_shard(self._folder, name)
            self._tally.add(shard)
            for index, start in enumerate(shard.start):
                begin, end = shard.offsets[index : index + 2]
                tokens = np.asarray(shard.tokens[begin:end])
                self._openings.add(self._opening(tokens, int(start), int(shard.category[index])))

    def _generation(self) -> Generation:
        spec = self._model.spec
        kept = len(self._layers) * spec.hidden_size * np.dtype(np.float16).itemsize
        slot = _runtime.KvStore.create(spec.layers, spec.kv_heads, spec.head_dim, 1).bytes_per_slot
        capacity = min(CAPACITY, spec.context_length)
        # As much again for shards that wait to be whole.
        lanes = self._options.memory_bytes // (capacity * (slot + 2 * kept))
        return Generation(
            self._model,
            layers=self._layers,
            end_tokens=self._tokenizer.eos_token_ids,
            lanes=max(_FEWEST_LANES, min(MOST_LANES, lanes)),
            capacity=capacity,
        )

    def _jobs(self) -> Iterator[Job]:
        turns = Turns(self._tokenizer)
        stream = SeedStream(self._options.seed)
        done = set(shard_names(self._folder))
        for shard in itertools.count():
            seeds = stream.next_shard()
            if shard_name(shard) in done:
                continue
            for index, seed in enumerate(seeds):
                generator = random.Random(f"{self._options.seed} {shard} {index}")
                script = converse(seed, turns, generator)
                category = CATEGORIES.index(seed.category)
                yield Job(shard * JOBS + index, category, script, generator.getrandbits(63))

    def _enough(self) -> bool:
        tokens = self._tally.tokens + self._waiting_tokens
        return tokens >= min(self._options.tokens, self._room())

    def _room(self) -> int:
        """Tokens that fit on the share of the disk that the data may take."""
        token = (len(self._layers) * self._model.spec.hidden_size) * 2 + 4
        return self._options.disk_bytes // token

    def _write_whole_shards(self) -> None:
        """In order, so that what counts as a duplicate does not hang on what is finished first."""
        while self._waiting and len(self._waiting[first := min(self._waiting)]) == JOBS:
            self._write(first)

    def _write(self, shard: int) -> None:
        conversations = self._waiting.pop(shard)
        texts = [text for _, held in sorted(conversations.items()) for text in held]
        self._waiting_tokens -= sum(len(text.tokens) for text in texts)
        chosen = [text for text in texts if self._is_new(text)]
        self._tally.duplicates += len(texts) - len(chosen)
        if not chosen:
            return
        if not (self._folder / DATA_FILE).exists():
            write_data_file(self._folder, self._document())
        write_shard(self._folder, shard_name(shard), chosen)
        self._tally.add(open_shard(self._folder, shard_name(shard)))
        write_data_file(self._folder, self._document())

    def _is_new(self, text: Text) -> bool:
        opening = self._opening(text.tokens, text.start, text.category)
        if opening in self._openings:
            return False
        self._openings.add(opening)
        return True

    def _opening(self, tokens: NDArray[np.int32], start: int, category: int) -> bytes:
        free = CATEGORIES[category] == FREE
        return opening_of(tokens, start, free, self._tokenizer.eos_token_ids)

    def _progress(self, rows: int) -> DataProgress:
        return DataProgress(
            self._tally.tokens + self._waiting_tokens,
            min(self._options.tokens, self._room()),
            self._tally.shards,
            rows / max(time.monotonic() - self._begun_at, 1e-3),
        )

    def _document(self) -> dict[str, Any]:
        return {
            "sapwood_version": __version__,
            **self._identity,
            **self._tally.report(CATEGORIES),
        }


@contextmanager
def _locked(folder: Path) -> Iterator[None]:
    """Keeps a second run out of the folder for as long as this one lasts."""
    lock = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    except BlockingIOError:
        raise SapwoodError(f"{folder}: another run is writing data there; wait for it") from None
    finally:
        os.close(lock)
