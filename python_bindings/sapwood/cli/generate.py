"""``sapwood generate``: one prompt in, one answer out."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sapwood.cli.common import (
    BundleArgument,
    ContextLengthOption,
    Drafter,
    DrafterOption,
    Host,
    HostOption,
    JsonOption,
    MaxNewTokensOption,
    MinPOption,
    ModeOption,
    NgramOption,
    RepetitionPenaltyOption,
    SeedOption,
    StopOption,
    SystemOption,
    TemperatureOption,
    ThreadsOption,
    TopKOption,
    TopPOption,
    messages_console,
    print_json,
)
from sapwood.errors import SapwoodError

if TYPE_CHECKING:
    from sapwood.generation import Generation

EXAMPLE = (
    "Example:  sapwood generate bundles/smollm2 --prompt 'Name three trees.' "
    "--mode dynamic --max-new-tokens 64 --json"
)


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
    mode: ModeOption = None,
    drafter: DrafterOption = Drafter.mix,
    ngram: NgramOption = None,
    host: HostOption = Host.native,
    temperature: TemperatureOption = 0.0,
    top_k: TopKOption = 0,
    top_p: TopPOption = 1.0,
    min_p: MinPOption = 0.0,
    repetition_penalty: RepetitionPenaltyOption = 1.0,
    seed: SeedOption = 0,
    max_new_tokens: MaxNewTokensOption = 256,
    threads: ThreadsOption = None,
    context_length: ContextLengthOption = None,
    stop: StopOption = None,
    as_json: JsonOption = False,
) -> None:
    """Answer one prompt, streaming the text; a line of statistics follows on standard error."""
    text = _read_prompt() if prompt is None else prompt
    from sapwood.engine import Engine

    engine = Engine(
        bundle,
        host=host.value,
        mode=mode.value if mode else None,
        drafter=drafter.value,
        ngram=ngram,
        threads=threads,
        context_length=context_length,
    )
    with engine.generate(
        text,
        system=system,
        raw=raw,
        max_new_tokens=max_new_tokens,
        temperature=temperature,
        top_k=top_k,
        top_p=top_p,
        min_p=min_p,
        repetition_penalty=repetition_penalty,
        seed=seed,
        stop=stop,
    ) as generation:
        for piece in generation:
            if not as_json:
                sys.stdout.write(piece)
                sys.stdout.flush()
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
        "stats": generation.stats.as_dict(),
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
