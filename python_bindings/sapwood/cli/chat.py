"""``sapwood chat``: a conversation in the terminal."""

from __future__ import annotations

import sys
from collections.abc import Iterator
from typing import TYPE_CHECKING

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
    from sapwood.engine import Chat

EXAMPLE = (
    "Example:  sapwood chat --temperature 0.7 --top-p 0.9   "
    "(/clear forgets the conversation, /quit or Ctrl-D ends it)"
)
_PROMPT = "> "


@with_options(max_new_tokens=512)
def chat(
    bundle: BundleArgument = None,
    system: SystemOption = None,
    as_json: JsonOption = False,
    *,
    engine_options: EngineOptions,
    answer_options: AnswerOptions,
) -> None:
    """Talk with a model. Turns come from the terminal, or one a line from standard input.

    With --json every answer is one JSON object on a line.
    """
    from sapwood.engine import Engine

    engine = Engine(bundle, **engine_options)
    conversation = engine.chat(system=system)
    interactive = sys.stdin.isatty() and not as_json
    for line in _lines(interactive):
        if line == "/quit":
            break
        if line == "/clear":
            conversation.clear()
            continue
        try:
            _answer(conversation, line, answer_options, as_json=as_json)
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


def _answer(conversation: Chat, text: str, options: AnswerOptions, *, as_json: bool) -> None:
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
