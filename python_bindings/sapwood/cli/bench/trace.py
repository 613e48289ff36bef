"""``sapwood bench trace``: what recording a trace costs, by itself and while decoding."""

from __future__ import annotations

import time
from collections.abc import Sequence
from statistics import median
from typing import TYPE_CHECKING, Any

from sapwood import _runtime
from sapwood.cli.bench.decode import DEFAULT_PROMPTS, PromptsOption, RepeatsOption
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

EXAMPLE = "Example:  sapwood bench trace --repeats 10 --json"

_ROUNDS = 2000
_CAPACITY = 1 << 16


@with_options(without=("mode",), max_new_tokens=128)
def trace(
    bundle: BundleArgument = None,
    prompt: PromptsOption = None,
    repeats: RepeatsOption = 5,
    as_json: JsonOption = False,
    *,
    engine_options: EngineOptions,
    answer_options: AnswerOptions,
) -> None:
    """Measure what recording costs: an event, and a step of decoding with and without.

    Steps are recorded and not, in turns, each pair in the other order; the ratio is the median over
    the pairs. The mode is chain, whose drafts do not depend on the clock.
    """
    from sapwood.engine import Engine

    engine = Engine(bundle, **engine_options)
    answer = completed(AnswerOptions, answer_options)
    answer["mode"] = "chain"
    cost = _runtime.trace_cost(rounds=_ROUNDS)
    found = _measure(engine, list(prompt or DEFAULT_PROMPTS), repeats, answer)
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
        f"without (medians, {len(found)} pairs of steps)",
        highlight=False,
        soft_wrap=True,
    )


def _measure(
    engine: Engine, prompts: Sequence[str], repeats: int, answer: AnswerOptions
) -> list[tuple[float, float]]:
    """Milliseconds of two steps that follow each other, the recorded one first."""
    from sapwood.generation import start_session

    session = engine.session
    ring = _runtime.TraceRing(_CAPACITY)
    turns = [prompt for _ in range(repeats) for prompt in prompts]
    found = []
    for prompt in measuring(turns):
        ids = engine.encode(prompt)
        session.record_into(None)
        start_session(session, ids, answer, engine.tokenizer.eos_token_ids)
        session.step()  # the first is another's
        pair: dict[bool, float] = {}
        recorded = True
        while True:
            session.record_into(ring if recorded else None)
            begin = time.perf_counter()
            emitted = session.step()
            pair[recorded] = 1e3 * (time.perf_counter() - begin)
            if not emitted or session.stop_reason != "none":
                break
            if len(pair) == 2:  # whoever was second is first now
                found.append((pair[True], pair[False]))
                pair = {}
            else:
                recorded = not recorded
    session.record_into(None)
    return found
