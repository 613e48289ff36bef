"""What several sub-commands share: arguments, output, progress."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Annotated, Any, TypeVar

import typer
from rich.console import Console
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn

from sapwood.errors import SapwoodError

_Item = TypeVar("_Item")


BundleArgument = Annotated[
    str | None,
    typer.Argument(
        metavar="[BUNDLE]",
        help="Folder that `sapwood export` wrote. Without it: the default bundle of scripts/run.",
        show_default=False,
    ),
]
SystemOption = Annotated[
    str | None,
    typer.Option(help="The system message, ahead of the prompt.", show_default=False),
]
SuiteOption = Annotated[
    Path,
    typer.Option(
        "--suite",
        help="JSON lines, each an object with question_id, category and turns.",
        show_default=False,
    ),
]
PerCategoryOption = Annotated[
    int, typer.Option(min=0, help="Prompts of each category, the first in the file; 0: all.")
]
JsonOption = Annotated[bool, typer.Option("--json", help="Print one JSON object, for machines.")]


def messages_console() -> Console:
    """For people, on standard error: progress and remarks never mix with the output."""
    return Console(stderr=True, highlight=False)


def output_console() -> Console:
    """For tables that people read, on standard output."""
    return Console(highlight=False)


def print_json(document: Mapping[str, Any]) -> None:
    json.dump(document, sys.stdout, ensure_ascii=False, indent=None)
    sys.stdout.write("\n")
    sys.stdout.flush()


def human_bytes(count: float) -> str:
    """1536 -> "1.5 KiB"."""
    for unit in ("B", "KiB", "MiB"):
        if count < 1024:
            return f"{count:.0f} B" if unit == "B" else f"{count:.1f} {unit}"
        count /= 1024
    return f"{count:.2f} GiB"


def choices(option: str, text: str, allowed: Sequence[str]) -> list[str]:
    """The parts of a list separated by commas, each once, in their order.

    Raises SapwoodError for one that is not allowed, and for none.
    """
    chosen = [part.strip() for part in text.split(",") if part.strip()]
    unknown = [part for part in chosen if part not in allowed]
    if unknown or not chosen:
        what = f"{unknown[0]!r} is not one" if unknown else "nothing given"
        raise SapwoodError(f"{option}: {what} of {', '.join(allowed)}")
    return list(dict.fromkeys(chosen))


def measuring(
    items: Sequence[_Item], describe: Callable[[_Item], str] = lambda _: "measuring"
) -> Iterator[_Item]:
    """The items; a terminal shows how far they are, and how long the rest will take."""
    with Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TimeRemainingColumn(),
        console=messages_console(),
        transient=True,
        disable=not sys.stderr.isatty(),
    ) as progress:
        task = progress.add_task("", total=len(items))
        for item in items:
            progress.update(task, description=describe(item))
            yield item
            progress.advance(task)
