"""``sapwood bench memory``: what slots, handles, timelines and a shared prefix cost."""

from __future__ import annotations

import random
from collections.abc import Iterator
from dataclasses import asdict, dataclass
from statistics import median, quantiles
from time import perf_counter_ns
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from sapwood.cli.common import (
    BundleArgument,
    JsonOption,
    measuring,
    messages_console,
    output_console,
    print_json,
)
from sapwood.cli.option_lists import with_options
from sapwood.errors import SapwoodError
from sapwood.options import AnswerOptions, EngineOptions, completed

if TYPE_CHECKING:
    from sapwood import _runtime
    from sapwood.engine import Engine

EXAMPLE = "Example:  sapwood bench memory --threads 2 --json"

KV_SLOTS = 2048  # of the bitmap
SLOT_COUNTS = (1, 4, 8, 16, 32)
CONTENDING_THREADS = 4
WAITERS = {
    "futex": "floor: a bare futex to wake",
    "parked": "timeline: signal to wake, parked",
    "patient": "timeline: signal to wake, spinning for 1 ms",
    "spinning": "timeline: signal to wake, spinning",
}
REST_TOKENS = 8  # of a prompt, after the prefix
WARM_UP_STEPS = 4


@dataclass(frozen=True)
class Result:
    """One line of the report: nanoseconds of single calls, by so many threads at once."""

    what: str
    p50_ns: float
    p99_ns: float
    threads: int

    @classmethod
    def of(cls, what: str, latency: _runtime.Latency, threads: int = 1) -> Result:
        return cls(what, latency.p50, latency.p99, threads)


@with_options(without=("mode", "forget_texts"))
def memory(
    bundle: BundleArgument = None,
    rounds: Annotated[
        int, typer.Option(min=100, max=1_000_000, help="Calls that are timed of each kind.")
    ] = 20_000,
    repeats: Annotated[
        int, typer.Option(min=2, max=1000, help="Prompts whose first token is timed.")
    ] = 7,
    prefix: Annotated[
        int,
        typer.Option(min=1, help="Tokens that two prompts share, of those whose first is timed."),
    ] = 1000,
    as_json: JsonOption = False,
    *,
    engine_options: EngineOptions,
) -> None:
    """Measure allocating and freeing KV slots, sharing a pool's handles, waking a thread that waits
    for a timeline, and the first token of a prompt that begins like another one before.

    Single calls are timed, without the clock's own time. Without a bundle, and where no default one
    is there, what needs a model is left out.
    """
    primitives = list(_primitives(rounds))
    engine = _engine(bundle, engine_options)
    report: dict[str, Any] = {"kv_slots": KV_SLOTS, "rounds": rounds}
    if engine is not None:
        prompts, report["shared_prefix"] = _shared_prefix(engine, prefix, repeats)
        report["allocations_per_token"] = _allocations_per_token(engine)
        report["hidden_draft_share"] = engine.session.stats.hidden_draft_share
        primitives += prompts
    report["results"] = [asdict(result) for result in primitives]
    if as_json:
        print_json(report)
    else:
        _print(report)


def _primitives(rounds: int) -> Iterator[Result]:
    from sapwood import _runtime

    for threads in (1, CONTENDING_THREADS):
        for count in SLOT_COUNTS:
            slots = _runtime.slot_latency(
                slots=KV_SLOTS, count=count, threads=threads, rounds=rounds
            )
            what = f"{count} KV slot{'s' if count > 1 else ''}"
            yield Result.of(f"allocate {what}", slots.allocate, threads)
            yield Result.of(f"free {what}", slots.free, threads)
    handles = _runtime.handle_latency(rounds=rounds)
    yield Result.of("pool: allocate a page", handles.allocate)
    yield Result.of("pool: free a page", handles.free)
    yield Result.of("pool: acquire a handle", handles.acquire)
    yield Result.of("pool: release a handle", handles.release)
    for waiter, what in WAITERS.items():
        # A round takes a millisecond, in which the other thread falls asleep if it may.
        most = rounds if waiter == "spinning" else 1000
        wake = _runtime.wake_latency(waiter=waiter, rounds=min(rounds, most))
        yield Result.of(what, wake, 2)


def _engine(bundle: str | None, options: EngineOptions) -> Engine | None:
    from sapwood.engine import Engine

    try:
        return Engine(bundle, **options)
    except SapwoodError as error:
        if bundle is not None:
            raise
        messages_console().print(f"left out what needs a model: {error}", style="dim")
        return None


def _random_ids(engine: Engine, count: int, source: random.Random) -> list[int]:
    """Ids of ordinary tokens: special ones stand at either end of a vocabulary."""
    vocabulary = engine.model.spec.vocabulary_size
    return [source.randrange(vocabulary // 4, vocabulary // 2) for _ in range(count)]


def _start(engine: Engine, ids: list[int], tokens: int) -> None:
    from sapwood.generation import start_session

    options: AnswerOptions = {"mode": engine.mode, "max_new_tokens": tokens}
    start_session(engine.session, ids, completed(AnswerOptions, options), ())


def _shared_prefix(
    engine: Engine, tokens: int, repeats: int
) -> tuple[list[Result], dict[str, Any]]:
    needed = tokens + REST_TOKENS + WARM_UP_STEPS
    if engine.context_length < needed:
        raise SapwoodError(
            f"context-length: a prefix of {tokens:,} tokens needs {needed:,}, not "
            f"{engine.context_length:,}"
        )
    source = random.Random(1)
    new: list[float] = []
    shared: list[float] = []

    def first_token(prefix: list[int]) -> float:
        ids = prefix + _random_ids(engine, REST_TOKENS, source)
        began = perf_counter_ns()
        _start(engine, ids, WARM_UP_STEPS)
        engine.session.step()
        return float(perf_counter_ns() - began)

    reused = tokens
    for number in measuring(range(repeats + 1)):
        prefix = _random_ids(engine, tokens, source)
        times = first_token(prefix), first_token(prefix)
        reused = min(reused, engine.session.stats.reused_prompt_tokens)
        if number:  # the first one warms up
            new.append(times[0])
            shared.append(times[1])
    threads = engine.threads
    results = [
        Result(f"first token, {tokens:,} new tokens", median(new), _p99(new), threads),
        Result(f"first token, {tokens:,} shared tokens", median(shared), _p99(shared), threads),
    ]
    ratio = median(a / b for a, b in zip(new, shared, strict=True))
    return results, {"reused_tokens": reused, "sooner": ratio}


def _p99(values: list[float]) -> float:
    return quantiles(values, n=100, method="inclusive")[98]


def _allocations_per_token(engine: Engine) -> float:
    """Of the runtime, in an answer after its first steps."""
    from sapwood import _runtime

    session = engine.session
    _start(engine, _random_ids(engine, 16, random.Random(2)), 64)
    for _ in range(WARM_UP_STEPS):
        session.step()
    allocated, tokens = _runtime.step_allocations(session)
    return allocated / max(tokens, 1)


def _print(report: dict[str, Any]) -> None:
    table = Table("what", "threads", "p50", "p99", box=None)
    for column in table.columns[1:]:
        column.justify = "right"
    for result in report["results"]:
        table.add_row(
            result["what"],
            str(result["threads"]),
            human_time(result["p50_ns"]),
            human_time(result["p99_ns"]),
        )
    console = output_console()
    console.print(table)
    if "shared_prefix" in report:
        shared = report["shared_prefix"]
        console.print(
            f"a shared prefix of {shared['reused_tokens']:,} tokens: first token "
            f"{shared['sooner']:.0f}x sooner; {report['allocations_per_token']:.2f} allocations a "
            f"token once warm; {report['hidden_draft_share']:.0%} of drafting hidden",
            style="dim",
        )


def human_time(nanoseconds: float) -> str:
    """1500 -> "1.5 us"."""
    for unit in ("ns", "us", "ms"):
        if nanoseconds < 1000:
            return f"{nanoseconds:.0f} ns" if unit == "ns" else f"{nanoseconds:.1f} {unit}"
        nanoseconds /= 1000
    return f"{nanoseconds:.2f} s"
