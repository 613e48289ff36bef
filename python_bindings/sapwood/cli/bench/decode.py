"""``sapwood bench decode``: tokens per second of prefill and decoding, by mode and host."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from sapwood.cli.common import (
    BundleArgument,
    JsonOption,
    choices,
    measuring,
    output_console,
    print_json,
)
from sapwood.cli.option_lists import with_options
from sapwood.errors import SapwoodError
from sapwood.options import (
    HOSTS,
    MODES,
    AnswerOptions,
    EngineOptions,
    completed,
    ids_must_agree,
)

if TYPE_CHECKING:
    from sapwood.engine import Engine
    from sapwood.stats import Stats

EXAMPLE = (
    "Example:  sapwood bench decode --modes plain,dynamic --hosts native,onnxruntime "
    "--repeats 5 --json"
)

# Our own words: a story, an explanation, and a task that repeats its input, which is what drafts
# from the text itself are good at.
DEFAULT_PROMPTS = (
    "Tell a short story about a lighthouse keeper who finds a message in a bottle.",
    "Explain to a gardener why leaves turn red in autumn, step by step.",
    "Repeat this list of errands once, then once more in the same words: buy bread, return the "
    "blue book, water the ferns, call the plumber, and post the letter to Aunt Ida.",
)

PromptsOption = Annotated[
    list[str] | None,
    typer.Option(
        "--prompt",
        "-p",
        help="May be given several times. Without it: three of ours.",
        show_default=False,
    ),
]
RepeatsOption = Annotated[int, typer.Option(min=1, max=1000, help="Answers to each prompt.")]


@dataclass(frozen=True)
class Turn:
    """One answer to be made; those of round 0 warm up."""

    round: int
    prompt: int
    mode: str
    engine: Engine


@dataclass(frozen=True)
class Sample:
    """One answer of one engine."""

    mode: str
    host: str
    prompt: int
    token_ids: tuple[int, ...]
    stats: Stats


@with_options(without=("host", "mode"), max_new_tokens=128)
def decode(
    bundle: BundleArgument = None,
    modes: Annotated[
        str, typer.Option(help="Modes to compare, separated by commas.")
    ] = "plain,chain,fixed,dynamic",
    hosts: Annotated[str, typer.Option(help="Hosts to compare, separated by commas.")] = "native",
    prompt: PromptsOption = None,
    repeats: RepeatsOption = 3,
    as_json: JsonOption = False,
    *,
    engine_options: EngineOptions,
    answer_options: AnswerOptions,
) -> None:
    """Compare decoding modes and hosts side by side, and check that the tokens are equal.

    Figures are medians over the answers; the first round warms up and is not counted.
    """
    from sapwood.engine import Engine

    mode_names = choices("--modes", modes, MODES)
    host_names = choices("--hosts", hosts, HOSTS)
    prompts = list(prompt or DEFAULT_PROMPTS)
    engines = [Engine(bundle, **(engine_options | EngineOptions(host=name))) for name in host_names]
    # In an order that gives every mode and host the same share of any drift.
    turns = [
        Turn(number, index, mode, engine)
        for number in range(repeats + 1)
        for index in range(len(prompts) if number else 1)
        for mode in mode_names
        for engine in engines
    ]
    samples = []
    for turn in measuring(turns, lambda turn: f"round {turn.round} of {repeats}"):
        sample = _answer(turn, prompts[turn.prompt], answer_options)
        if turn.round:
            samples.append(sample)
    answer_options = completed(AnswerOptions, answer_options)
    report = {
        **summarise(samples, prompts, engines[0].threads),
        "ids_must_agree": ids_must_agree(answer_options),
    }
    if as_json:
        print_json(report)
    else:
        _print(report)
    if not report["equal_tokens"] and report["ids_must_agree"]:
        raise SapwoodError("the modes or hosts gave different tokens; this is a bug of ours")


def _answer(turn: Turn, prompt: str, options: AnswerOptions) -> Sample:
    turn.engine.forget()  # so that no prompt is found in the cache
    with turn.engine.generate(prompt, **(options | AnswerOptions(mode=turn.mode))) as generation:
        for _ in generation:
            pass
    ids = tuple(generation.token_ids)
    return Sample(turn.mode, turn.engine.host, turn.prompt, ids, generation.stats)


def summarise(samples: Sequence[Sample], prompts: Sequence[str], threads: int) -> dict[str, Any]:
    """The object that ``--json`` prints."""
    groups: dict[tuple[str, str], list[Stats]] = {}
    answers: dict[int, set[tuple[int, ...]]] = {}
    for sample in samples:
        groups.setdefault((sample.mode, sample.host), []).append(sample.stats)
        answers.setdefault(sample.prompt, set()).add(sample.token_ids)
    results: list[dict[str, Any]] = [
        {
            "mode": mode,
            "host": host,
            "kernels": group[0].kernels,
            "answers": len(group),
            "tokens_per_second": median(s.tokens_per_second for s in group),
            "prompt_tokens_per_second": median(s.prompt_tokens_per_second for s in group),
            "first_token_seconds": median(s.first_token_seconds for s in group),
            "mean_accepted_length": sum(s.emitted_tokens for s in group)
            / max(1, sum(s.steps for s in group)),
            "mean_rows": sum(s.rows_verified for s in group) / max(1, sum(s.steps for s in group)),
        }
        for (mode, host), group in groups.items()
    ]
    baseline = {r["host"]: r["tokens_per_second"] for r in results if r["mode"] == "plain"}
    for result in results:
        plain = baseline.get(result["host"])
        result["speedup"] = result["tokens_per_second"] / plain if plain else None
    return {
        "threads": threads,
        "prompts": len(prompts),
        "equal_tokens": all(len(kinds) == 1 for kinds in answers.values()),
        "results": results,
    }


def _print(report: dict[str, Any]) -> None:
    console = output_console()
    table = Table(
        "mode",
        "host",
        "tokens/s",
        "against plain",
        "tokens a step",
        "rows a step",
        "prompt tokens/s",
        "first token",
        box=None,
        padding=(0, 2, 0, 0),
    )
    for result in report["results"]:
        speedup = result["speedup"]
        table.add_row(
            result["mode"],
            result["host"],
            f"{result['tokens_per_second']:.1f}",
            "-" if speedup is None else f"{speedup:.2f}x",
            f"{result['mean_accepted_length']:.2f}",
            f"{result['mean_rows']:.1f}",
            f"{result['prompt_tokens_per_second']:.0f}",
            f"{result['first_token_seconds'] * 1000:.0f} ms",
        )
    console.print(table)
    unequal = "TOKENS DIFFER" if report["ids_must_agree"] else "tokens differ, their law does not"
    equal = "all modes and hosts gave the same tokens" if report["equal_tokens"] else unequal
    console.print(
        f"{report['prompts']} prompts, medians, {report['threads']} threads; {equal}",
        style="dim",
    )
