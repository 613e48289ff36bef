"""``sapwood bench decode``: tokens per second of prefill and decoding, by mode and host."""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from statistics import median
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.progress import Progress, SpinnerColumn, TextColumn, TimeElapsedColumn
from rich.table import Table

from sapwood.cli.common import (
    BundleArgument,
    ContextLengthOption,
    Host,
    JsonOption,
    Mode,
    ThreadsOption,
    messages_console,
    output_console,
    print_json,
)
from sapwood.errors import SapwoodError

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


@dataclass(frozen=True)
class Sample:
    """One answer of one engine."""

    mode: str
    host: str
    prompt: int
    token_ids: tuple[int, ...]
    stats: Stats


def decode(
    bundle: BundleArgument = None,
    modes: Annotated[
        str, typer.Option(help="Modes to compare, separated by commas.")
    ] = "plain,chain,fixed,dynamic",
    hosts: Annotated[str, typer.Option(help="Hosts to compare, separated by commas.")] = "native",
    prompt: Annotated[
        list[str] | None,
        typer.Option(
            "--prompt",
            "-p",
            help="May be given several times. Without it: three of ours.",
            show_default=False,
        ),
    ] = None,
    repeats: Annotated[int, typer.Option(min=1, max=1000, help="Answers to each prompt.")] = 3,
    max_new_tokens: Annotated[
        int, typer.Option("--max-new-tokens", min=1, help="Tokens of each answer.")
    ] = 128,
    threads: ThreadsOption = None,
    context_length: ContextLengthOption = None,
    as_json: JsonOption = False,
) -> None:
    """Compare decoding modes and hosts side by side, greedy, and check that the tokens are equal.

    Figures are medians over the answers; the first round warms up and is not counted.
    """
    from sapwood.engine import Engine

    mode_names = choices("--modes", modes, [mode.value for mode in Mode])
    host_names = choices("--hosts", hosts, [host.value for host in Host])
    prompts = list(prompt or DEFAULT_PROMPTS)
    engines = [
        Engine(bundle, host=name, threads=threads, context_length=context_length)
        for name in host_names
    ]
    with Progress(
        SpinnerColumn(),
        TextColumn("{task.description}"),
        TimeElapsedColumn(),
        console=messages_console(),
        transient=True,
        disable=not sys.stderr.isatty(),
    ) as progress:
        task = progress.add_task("warming up", total=None)
        samples: list[Sample] = []
        for number, sample in _rounds(engines, mode_names, prompts, repeats, max_new_tokens):
            progress.update(task, description=f"round {number} of {repeats}")
            samples.append(sample)
    report = summarise(samples, prompts, engines[0].threads)
    if as_json:
        print_json(report)
    else:
        _print(report)
    if not report["equal_tokens"]:
        raise SapwoodError("the modes or hosts gave different tokens; this is a bug of ours")


def _rounds(
    engines: Sequence[Engine],
    modes: Sequence[str],
    prompts: Sequence[str],
    repeats: int,
    max_new_tokens: int,
) -> Iterator[tuple[int, Sample]]:
    """Answers in an order that gives every mode and host the same share of any drift."""
    for number in range(repeats + 1):
        for index, prompt in enumerate(prompts if number else prompts[:1]):
            for mode in modes:
                for engine in engines:
                    # Another text in between, so that no prompt is found in the cache.
                    engine.forget()
                    with engine.generate(
                        prompt, mode=mode, max_new_tokens=max_new_tokens
                    ) as generation:
                        for _ in generation:
                            pass
                    if number:
                        yield (
                            number,
                            Sample(
                                mode,
                                engine.host,
                                index,
                                tuple(generation.token_ids),
                                generation.stats,
                            ),
                        )


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
        "prompts": list(prompts),
        "equal_tokens": all(len(kinds) == 1 for kinds in answers.values()),
        "results": results,
    }


def choices(option: str, text: str, allowed: Sequence[str]) -> list[str]:
    chosen = [part.strip() for part in text.split(",") if part.strip()]
    unknown = [part for part in chosen if part not in allowed]
    if unknown or not chosen:
        what = f"{unknown[0]!r} is not one" if unknown else "nothing given"
        raise SapwoodError(f"{option}: {what} of {', '.join(allowed)}")
    return list(dict.fromkeys(chosen))


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
    equal = (
        "all modes and hosts gave the same tokens" if report["equal_tokens"] else "TOKENS DIFFER"
    )
    console.print(
        f"{len(report['prompts'])} prompts, medians, greedy, {report['threads']} threads; {equal}",
        style="dim",
    )
