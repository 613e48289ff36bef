"""``sapwood bench double-buffer``: what drafting on a core of its own hides, and what it brings."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from sapwood.cli.bench import double_buffer_vulkan
from sapwood.cli.bench.decode import DEFAULT_PROMPTS, PromptsOption, RepeatsOption
from sapwood.cli.common import (
    BundleArgument,
    JsonOption,
    measuring,
    output_console,
    print_json,
)
from sapwood.cli.option_lists import with_options
from sapwood.errors import SapwoodError
from sapwood.options import AnswerOptions, EngineOptions, completed, ids_must_agree

if TYPE_CHECKING:
    from sapwood._runtime import SessionStats
    from sapwood.engine import Engine

EXAMPLE = (
    "Example:  sapwood bench double-buffer --repeats 3 --json\n\n"
    "sapwood bench double-buffer --vulkan"
)

# How the draft runs, and the options that make it so.
_WAYS: dict[str, EngineOptions] = {
    "in turns": {"draft_threads": 0},
    "beside": {"draft_threads": 1, "double_buffer": "off"},
    "ahead": {"draft_threads": 1, "double_buffer": "on"},
    "measured": {"draft_threads": 1, "double_buffer": "measured"},
}


@dataclass(frozen=True)
class _Answer:
    ids: tuple[int, ...]
    counts: SessionStats
    ways: Counter[str]  # steps that drafted so


@with_options(
    without=("host", "mode", "threads", "draft_threads", "double_buffer"), max_new_tokens=128
)
def double_buffer(
    bundle: BundleArgument = None,
    prompt: PromptsOption = None,
    repeats: RepeatsOption = 3,
    vulkan: Annotated[
        bool,
        typer.Option(
            "--vulkan", help="Two Vulkan devices in place of two cores; additions, no model."
        ),
    ] = False,
    as_json: JsonOption = False,
    *,
    engine_options: EngineOptions,
    answer_options: AnswerOptions,
) -> None:
    """Compare drafting in turns with drafting ahead on a core of its own.

    The target has one core and a draft that runs a network another: in turns on the target's core;
    beside it, waiting for it; ahead, while the target verifies; and the fastest of these, measured.
    Ways are interleaved; the text of all must be the same.

    With --vulkan one device drafts what another one decides, ordered by their own timelines: both
    of this machine's, or two logical ones where there is one driver. No kernels of a model run
    there yet: a pass adds numbers.
    """
    if vulkan:
        if bundle is not None or prompt:
            raise SapwoodError(
                "double-buffer: --vulkan runs no model; leave out BUNDLE and prompts"
            )
        measured = double_buffer_vulkan.measure(repeats)
        print_json(measured) if as_json else double_buffer_vulkan.show(measured)
        return
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) < 2:
        raise SapwoodError("double-buffer: needs two cores; this process may run on one only")
    answer = completed(AnswerOptions, answer_options)
    answer["mode"] = "dynamic"
    try:
        os.sched_setaffinity(0, {cores[0]})
        engines = {
            way: _opened(bundle, {**engine_options, "threads": 1, **options}, cores)
            for way, options in _WAYS.items()
        }
        answers = _measure(engines, list(prompt or DEFAULT_PROMPTS), repeats, answer)
    finally:
        os.sched_setaffinity(0, set(cores))
    ids = {way: [each.ids for each in found] for way, found in answers.items()}
    equal = all(each == ids["in turns"] for each in ids.values())
    engine = engines["in turns"]
    report: dict[str, Any] = {
        "bundle": engine.manifest.get("name"),
        "drafter": engine.drafting.drafter,
        "cores": cores[:2],
        "repeats": repeats,
        "equal_tokens": equal,
        "ways": {way: _figures(found) for way, found in answers.items()},
    }
    if as_json:
        print_json(report)
    else:
        _show(report)
    if not equal and ids_must_agree(answer):
        raise SapwoodError("double-buffer: the ways gave different tokens, which is a bug")


def _opened(bundle: Any, options: EngineOptions, cores: Sequence[int]) -> Engine:
    """The drafting thread stays on the core on which it is made."""
    from sapwood.engine import Engine

    own = options.get("draft_threads", 0) > 0
    os.sched_setaffinity(0, {cores[1] if own else cores[0]})
    try:
        engine = Engine(bundle, **options)
    finally:
        os.sched_setaffinity(0, {cores[0]})
    if engine.drafting.trained is None and engine.drafting.model is None:
        raise SapwoodError(
            f"double-buffer: the drafter {engine.drafting.drafter} runs no network; name one that "
            "does as --drafter, or a draft as --draft"
        )
    return engine


def _measure(
    engines: dict[str, Engine], prompts: list[str], repeats: int, answer: AnswerOptions
) -> dict[str, list[_Answer]]:
    from sapwood.generation import start_session

    turns = [
        (turn, prompt, way) for turn in range(repeats + 1) for prompt in prompts for way in engines
    ]
    answers: dict[str, list[_Answer]] = {way: [] for way in engines}
    for turn, prompt, way in measuring(turns, lambda each: each[2]):
        engine = engines[way]
        ids = engine.encode(prompt)
        start_session(engine.session, ids, answer, engine.tokenizer.eos_token_ids)
        ways: Counter[str] = Counter()
        while engine.session.step():
            ways[engine.session.stats.draft_way] += 1
        if turn > 0:  # the first warms up
            found = tuple(engine.session.tokens[len(ids) :])
            answers[way].append(_Answer(found, engine.session.stats, ways))
    return answers


def _figures(answers: Sequence[_Answer]) -> dict[str, Any]:
    counts = [each.counts for each in answers]
    ways = sum((each.ways for each in answers), Counter[str]())
    steps = max(1, sum(each.steps for each in counts))
    tokens = sum(each.emitted_tokens for each in counts)
    decode = sum(each.decode_seconds for each in counts)
    waited = sum(each.draft_seconds for each in counts)
    hidden = sum(each.hidden_draft_seconds for each in counts)
    return {
        "tokens_per_second": tokens / decode if decode > 0 else 0.0,
        "mean_accepted_length": tokens / steps,
        "step_milliseconds": 1e3 * decode / steps,
        "draft_milliseconds_waited": 1e3 * waited / steps,
        "steps_by_way": dict(ways),
        "kept_ahead": sum(each.kept_ahead for each in counts),
        "discarded_ahead": sum(each.discarded_ahead for each in counts),
        "hidden_draft_share": hidden / (hidden + waited) if hidden + waited > 0 else 0.0,
    }


def _show(report: dict[str, Any]) -> None:
    table = Table(title=f"{report['bundle']}, {report['drafter']}: cores {report['cores']}")
    for column in (
        "draft",
        "tokens/s",
        "tokens a step",
        "ms a step",
        "ms for drafts",
        "kept",
        "hidden",
    ):
        table.add_column(column, justify="left" if column == "draft" else "right")
    for way, figures in report["ways"].items():
        ahead = figures["kept_ahead"] + figures["discarded_ahead"]
        table.add_row(
            way,
            f"{figures['tokens_per_second']:.1f}",
            f"{figures['mean_accepted_length']:.2f}",
            f"{figures['step_milliseconds']:.2f}",
            f"{figures['draft_milliseconds_waited']:.2f}",
            f"{figures['kept_ahead'] / ahead:.0%}" if ahead else "",
            f"{figures['hidden_draft_share']:.0%}",
        )
    output_console().print(table)
