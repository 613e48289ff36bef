"""``sapwood bench trace``: what recording a trace costs, by itself and while decoding."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import median
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sapwood import _runtime
from sapwood.cli.bench.decode import DEFAULT_PROMPTS, PromptsOption
from sapwood.cli.common import (
    BundleArgument,
    JsonOption,
    measuring,
    output_console,
    print_json,
)
from sapwood.cli.option_lists import with_options
from sapwood.options import AnswerOptions, EngineOptions, completed

if TYPE_CHECKING:
    from sapwood.engine import Engine

EXAMPLE = "Example:  sapwood bench trace --pairs 20 --json"

_ROUNDS = 2000
_CAPACITY = 1 << 16


@with_options(without=("mode",), max_new_tokens=128)
def trace(
    bundle: BundleArgument = None,
    prompt: PromptsOption = None,
    pairs: Annotated[
        int, typer.Option(min=1, help="Of answers to each prompt, one recorded and one not.")
    ] = 10,
    as_json: JsonOption = False,
    *,
    engine_options: EngineOptions,
    answer_options: AnswerOptions,
) -> None:
    """Measure what recording costs: an event, and a step of decoding with and without.

    Answers are recorded and not, in turns, each pair in the other order; the ratio is the median
    over the pairs. The mode is chain, whose drafts do not depend on the clock.
    """
    from sapwood.engine import Engine

    engine = Engine(bundle, **engine_options)
    answer = completed(AnswerOptions, answer_options)
    answer["mode"] = "chain"
    cost = _runtime.trace_cost(rounds=_ROUNDS)
    found = _measure(engine, list(prompt or DEFAULT_PROMPTS), pairs, answer)
    report: dict[str, Any] = {
        "bundle": engine.manifest.get("name"),
        "event_nanoseconds": cost.event,
        "stage_nanoseconds": cost.stage,
        "off_nanoseconds": cost.off,
        "pairs": len(found),
        "step_milliseconds": median(off for _, off in found),
        "recorded_step_milliseconds": median(on for on, _ in found),
        "ratio": median(on / off for on, off in found),
    }
    if as_json:
        print_json(report)
        return
    output_console().print(
        f"an event takes {cost.event:.1f} ns, a stage with its clock {cost.stage:.1f} ns, and "
        f"{cost.off:.1f} ns where nobody records\n"
        f"a recorded step takes {report['ratio']:.4f} times as long: "
        f"{report['recorded_step_milliseconds']:.3f} ms, {report['step_milliseconds']:.3f} ms "
        f"without (medians, {len(found)} pairs of answers)",
        highlight=False,
        soft_wrap=True,
    )


def _measure(
    engine: Engine, prompts: Sequence[str], pairs: int, answer: AnswerOptions
) -> list[tuple[float, float]]:
    """Milliseconds of a step, recorded and not, of every pair."""
    turns = [(turn, prompt) for turn in range(pairs + 1) for prompt in prompts]
    ring = _runtime.TraceRing(_CAPACITY)
    found = []
    for number, (turn, prompt) in enumerate(measuring(turns)):
        ids = engine.encode(prompt)
        pair = {}
        for recorded in (number % 2 == 0, number % 2 != 0):
            engine.session.record_into(ring if recorded else None)
            pair[recorded] = _step_milliseconds(engine, ids, answer)
        if turn > 0:  # the first warms up
            found.append((pair[True], pair[False]))
    return found


def _step_milliseconds(engine: Engine, ids: Sequence[int], answer: AnswerOptions) -> float:
    from sapwood.generation import start_session

    start_session(engine.session, ids, answer, engine.tokenizer.eos_token_ids)
    while engine.session.step():
        pass
    counts = engine.session.stats
    return 1e3 * counts.decode_seconds / max(1, counts.steps)
