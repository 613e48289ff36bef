"""``sapwood chat``: a conversation in the terminal."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

from sapwood.cli.common import (
    BundleArgument,
    ContextLengthOption,
    Host,
    HostOption,
    JsonOption,
    MaxNewTokensOption,
    MinPOption,
    ModeOption,
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
    from sapwood.engine import Chat
    from sapwood.options import GenerateOptions

EXAMPLE = (
    "Example:  sapwood chat --temperature 0.7 --top-p 0.9   "
    "(/clear forgets the conversation, /quit or Ctrl-D ends it)"
)
_PROMPT = "> "


def chat(
    bundle: BundleArgument = None,
    system: SystemOption = None,
    mode: ModeOption = None,
    host: HostOption = Host.native,
    temperature: TemperatureOption = 0.0,
    top_k: TopKOption = 0,
    top_p: TopPOption = 1.0,
    min_p: MinPOption = 0.0,
    repetition_penalty: RepetitionPenaltyOption = 1.0,
    seed: SeedOption = 0,
    max_new_tokens: MaxNewTokensOption = 512,
    threads: ThreadsOption = None,
    context_length: ContextLengthOption = None,
    stop: StopOption = None,
    as_json: JsonOption = False,
) -> None:
    """Talk with a model. Turns come from the terminal, or one a line from standard input.

    With --json every answer is one JSON object on a line.
    """
    from sapwood.engine import Engine

    engine = Engine(
        bundle,
        host=host.value,
        mode=mode.value if mode else None,
        threads=threads,
        context_length=context_length,
    )
    conversation = engine.chat(system=system)
    options: GenerateOptions = {
        "max_new_tokens": max_new_tokens,
        "temperature": temperature,
        "top_k": top_k,
        "top_p": top_p,
        "min_p": min_p,
        "repetition_penalty": repetition_penalty,
        "seed": seed,
        "stop": stop,
    }
    interactive = sys.stdin.isatty() and not as_json
    for line in _lines(interactive):
        if line == "/quit":
            break
        if line == "/clear":
            conversation.clear()
            continue
        try:
            _answer(conversation, line, options, as_json=as_json)
        except SapwoodError as error:
            # A turn that does not fit is no reason to lose the conversation.
            if not interactive:
                raise
            messages_console().print(str(error), style="red", markup=False)
            continue
        except KeyboardInterrupt:
            # While an answer is being made it ends the answer; at the prompt, the conversation.
            if not interactive:
                raise
            sys.stdout.write("\n")
            continue
        if as_json:
            print_json(
                {"text": conversation.messages[-1]["content"], "stats": engine.stats.as_dict()}
            )
        elif interactive:
            messages_console().print(engine.stats.line(), style="dim", markup=False)


def _answer(conversation: Chat, text: str, options: GenerateOptions, *, as_json: bool) -> None:
    for piece in conversation.say(text, **options):
        if not as_json:
            sys.stdout.write(piece)
            sys.stdout.flush()
    if not as_json:
        sys.stdout.write("\n")
        sys.stdout.flush()


def _lines(interactive: bool) -> Iterator[str]:
    """The turns a person types; empty ones are left out."""
    if interactive:
        import readline  # noqa: F401  (line editing and history for input())

        messages_console().print("Ctrl-D ends, /clear forgets.", style="dim")
    while True:
        try:
            line = input(_PROMPT) if interactive else sys.stdin.readline()
        except EOFError:
            sys.stdout.write("\n")
            return
        except UnicodeDecodeError as error:
            raise SapwoodError(f"standard input is not UTF-8 text ({error.reason})") from error
        if not interactive and not line:
            return
        if line.strip():
            yield line.strip()
