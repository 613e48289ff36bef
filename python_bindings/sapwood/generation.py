"""One answer being made: steps of the runtime in, pieces of text out."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from types import TracebackType
from typing import TYPE_CHECKING

from sapwood import _runtime
from sapwood.metrics import Metrics
from sapwood.options import AnswerOptions, checked_stops
from sapwood.sensors import celsius, memory_used, watts
from sapwood.stats import Stats
from sapwood.stream import StopMatcher

if TYPE_CHECKING:
    from sapwood.engine import Engine

# Filling the cache with fewer tokens than this takes a moment; with more, Ctrl-C must not wait.
_INTERRUPTIBLE_PROMPT = 256


_SENSE_SECONDS = 0.5


class Generation(Iterator[str]):
    """One answer. Iterate for its pieces; ``close`` or a ``with`` block ends it early.

    ``prompt_ids`` are known at once; ``token_ids`` and ``text`` grow while iterating. The ids
    include an end-of-sequence token and, after a stop string, the token that completed it; the
    text ends before the stop string. A newer answer of the same engine ends this one.
    """

    def __init__(
        self,
        engine: Engine,
        prompt_ids: list[int],
        options: AnswerOptions,
        scenario: str | None = None,
    ) -> None:
        stops = checked_stops(options["stop"])
        self.prompt_ids = prompt_ids
        self.scenario = scenario
        self.token_ids: list[int] = []
        self.text = ""
        self.stop_string: str | None = None
        self._engine = engine
        self._session = engine.session
        self._began = time.perf_counter()
        self._sensed = 0.0
        self._first_token_seconds = 0.0
        self._final_stats: Stats | None = None
        self._start(options)
        self._pieces = self._run(stops)

    def __iter__(self) -> Generation:
        return self

    def __next__(self) -> str:
        return next(self._pieces)

    def __enter__(self) -> Generation:
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self.close()

    def close(self) -> None:
        """Ends the answer here. Harmless once it has ended."""
        if self._final_stats is None:
            self._finish()
        self._pieces = iter(())

    @property
    def stats(self) -> Stats:
        """Counts and times, so far or of the whole answer."""
        return self._current_stats() if self._final_stats is None else self._final_stats

    @property
    def metrics(self) -> Metrics:
        """How it is going, now."""
        session = self._session
        return Metrics.of(session.stats, kv_bytes=session.cache.taken * session.kv_bytes_per_token)

    @property
    def stop_reason(self) -> str:
        """Why the answer ended: "eos", "length", "context", "stop" (a stop string), "stopped"
        (closed early), "cancelled"; "none" while it goes on.
        """
        return self.stats.stop_reason

    def _sense(self) -> None:
        """Tells the session what the device's sensors say, now and then."""
        if (now := time.monotonic()) - self._sensed >= _SENSE_SECONDS:
            self._sensed = now
            self._session.observe(celsius=celsius(), watts=watts(), memory_used=memory_used())

    def _start(self, options: AnswerOptions) -> None:
        eos_token_ids = self._engine.tokenizer.eos_token_ids

        def start() -> None:
            start_session(self._session, self.prompt_ids, options, eos_token_ids)

        if len(self.prompt_ids) < _INTERRUPTIBLE_PROMPT:
            start()
        else:
            run_interruptibly(start, self._session.cancel)

    def _run(self, stops: Sequence[str]) -> Iterator[str]:
        detokenizer = self._engine.tokenizer.detokenizer()
        matcher = StopMatcher(stops)
        governed = self._engine.options["governor"]
        while matcher.matched is None and (tokens := self._session.step()):
            if governed:
                self._sense()
            if not self.token_ids:
                self._first_token_seconds = time.perf_counter() - self._began
            piece = ""
            for token in tokens:
                self.token_ids.append(token)
                piece += matcher.push(detokenizer.push(token))
                if matcher.matched is not None:
                    self.stop_string = matcher.matched
                    self._session.finish_at(len(self.token_ids))
                    break
            if piece:
                self.text += piece
                yield piece
        # Half a character at the end becomes U+FFFD, and what a stop string might still have
        # claimed is free.
        rest = matcher.push(detokenizer.finish()) + matcher.finish()
        self.text += rest
        self._finish()
        if rest:
            yield rest

    def _finish(self) -> None:
        if self._session.stop_reason == "none":
            self._session.finish_at(len(self.token_ids))
        self._final_stats = self._current_stats()

    def _current_stats(self) -> Stats:
        return Stats.of(
            self._session.stats,
            host=self._engine.host,
            drafter=self._engine.drafting.drafter,
            kernels=_runtime.active_kernels(),
            threads=self._engine.threads,
            first_token_seconds=self._first_token_seconds,
            stop_reason="stop" if self.stop_string is not None else self._session.stop_reason,
        )


def start_session(
    session: _runtime.Session,
    prompt_ids: Sequence[int],
    options: AnswerOptions,
    eos_token_ids: Iterable[int],
) -> None:
    """Fills the session's cache with a prompt. ``options`` are complete; stop texts and the like
    are whoever's who turns ids into text."""
    sampling = _runtime.SamplingOptions(
        temperature=options["temperature"],
        top_k=options["top_k"],
        top_p=options["top_p"],
        min_p=options["min_p"],
        repetition_penalty=options["repetition_penalty"],
        seed=options["seed"],
    )
    sampling.check()
    session.start(
        prompt_ids,
        mode=options["mode"] or "dynamic",
        sampling=sampling,
        max_new_tokens=options["max_new_tokens"],
        eos_token_ids=list(eos_token_ids),
        chain_length=options["chain_length"],
        fixed_nodes=options["fixed_nodes"],
        adapt=options["adapt"],
        length_rule=options["length_rule"],
        verifier=options["verifier"],
        beta=options["beta"],
        least_accepted_length=options["least_accepted_length"],
        target_milliseconds=options["target_milliseconds"],
    )


def run_interruptibly(work: Callable[[], None], cancel: Callable[[], None]) -> None:
    """Runs ``work`` on another thread, so that Ctrl-C here reaches Python and calls ``cancel``."""
    failure: list[BaseException] = []

    def guarded() -> None:
        try:
            work()
        except BaseException as error:
            failure.append(error)

    worker = threading.Thread(target=guarded, name="sapwood-prefill")
    try:
        worker.start()
        # A join without a limit would not let signals through.
        while worker.is_alive():
            worker.join(0.05)
    except BaseException:
        cancel()
        if worker.ident is not None:
            worker.join()
        raise
    if failure:
        raise failure[0]
