"""``sapwood generate``: one prompt in, one answer out."""

from __future__ import annotations

import sys
from contextlib import nullcontext
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sapwood.cli.common import (
    BundleArgument,
    JsonOption,
    SystemOption,
    messages_console,
    print_json,
)
from sapwood.cli.option_lists import with_options
from sapwood.errors import SapwoodError
from sapwood.options import AnswerOptions, EngineOptions

if TYPE_CHECKING:
    from sapwood.generation import Generation

EXAMPLE = (
    "Example:  sapwood generate bundles/smollm2 --prompt 'Name three trees.' "
    "--mode dynamic --max-new-tokens 64 --json"
)


@with_options()
def generate(
    bundle: BundleArgument = None,
    prompt: Annotated[
        str | None,
        typer.Option(
            "--prompt", "-p", help="What to answer. Without it: standard input.", show_default=False
        ),
    ] = None,
    system: SystemOption = None,
    raw: Annotated[
        bool, typer.Option("--raw", help="Continue the text as it stands, without chat template.")
    ] = False,
    show_metrics: Annotated[
        bool,
        typer.Option(
            "--metrics",
            help="Show speed, accepted length, tree, strategy, heat and memory on standard error "
            "while the answer is made.",
        ),
    ] = False,
    as_json: JsonOption = False,
    *,
    engine_options: EngineOptions,
    answer_options: AnswerOptions,
) -> None:
    """Answer one prompt, streaming the text; a line of statistics follows on standard error."""
    text = _read_prompt() if prompt is None else prompt
    from sapwood.cli.metrics_strip import MetricsStrip
    from sapwood.engine import Engine

    engine = Engine(bundle, **engine_options)
    with (
        engine.generate(text, system=system, raw=raw, **answer_options) as generation,
        MetricsStrip() if show_metrics else nullcontext() as strip,
    ):
        for piece in generation:
            if not as_json:
                sys.stdout.write(piece)
                sys.stdout.flush()
            if strip is not None:
                strip.show(generation.metrics)
    if as_json:
        print_json(describe(generation))
    else:
        sys.stdout.write("\n")
        sys.stdout.flush()
        messages_console().print(generation.stats.line(), style="dim", soft_wrap=True)


def describe(generation: Generation) -> dict[str, Any]:
    """The object that ``--json`` prints."""
    return {
        "text": generation.text,
        "token_ids": generation.token_ids,
        "prompt_token_ids": generation.prompt_ids,
        "stop_reason": generation.stop_reason,
        "stop_string": generation.stop_string,
        "scenario": generation.scenario,
        "stats": generation.stats.as_dict(),
        "metrics": generation.metrics.as_dict(),
    }


def _read_prompt() -> str:
    if sys.stdin is None or sys.stdin.isatty():
        raise SapwoodError("no prompt; give one with --prompt, or on standard input")
    try:
        text = sys.stdin.read()
    except UnicodeDecodeError as error:
        raise SapwoodError(f"standard input is not UTF-8 text ({error.reason})") from error
    text = text.removesuffix("\n")  # the shell's, not the person's
    if not text:
        raise SapwoodError("standard input was empty; give a prompt with --prompt")
    return text
