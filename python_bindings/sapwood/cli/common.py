"""What several sub-commands share: options, output, the bundle argument."""

from __future__ import annotations

import json
import sys
from collections.abc import Mapping
from enum import Enum
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.console import Console


class Mode(str, Enum):
    """How tokens are found: one at a time, or by checking a draft of a given shape."""

    plain = "plain"
    chain = "chain"
    fixed = "fixed"
    dynamic = "dynamic"


class Drafter(str, Enum):
    """What guesses a draft."""

    mix = "mix"
    ngram = "ngram"
    successor = "successor"
    none = "none"


class Host(str, Enum):
    """What runs the model: our own loop over the layers, or ONNX Runtime with our operators."""

    native = "native"
    onnxruntime = "onnxruntime"


BundleArgument = Annotated[
    str | None,
    typer.Argument(
        metavar="[BUNDLE]",
        help="Folder that `sapwood export` wrote. Without it: the default bundle of scripts/run.",
        show_default=False,
    ),
]
ModeOption = Annotated[
    Mode | None,
    typer.Option(
        help="How to decode: plain (no draft), chain, fixed (tree of a fixed shape), dynamic "
        "(tree cut to measure). All give the same tokens. Without it: what the bundle says.",
        show_default=False,
    ),
]
DrafterOption = Annotated[
    Drafter,
    typer.Option(
        help="What guesses: ngram (what followed in the text), successor (what the target itself "
        "said after the same tokens), mix (both), none."
    ),
]
NgramOption = Annotated[
    Path | None,
    typer.Option(
        help="A table that `sapwood ngram build` wrote, for mix or successor to begin with.",
        show_default=False,
    ),
]
HostOption = Annotated[Host, typer.Option(help="What runs the model.")]
TemperatureOption = Annotated[
    float, typer.Option(min=0.0, help="0 is greedy: always the most likely token.")
]
TopKOption = Annotated[
    int, typer.Option("--top-k", min=0, help="Keep the k most likely tokens; 0: all.")
]
TopPOption = Annotated[
    float,
    typer.Option("--top-p", min=0.0, max=1.0, help="Keep the likeliest tokens up to this mass."),
]
MinPOption = Annotated[
    float,
    typer.Option(
        "--min-p", min=0.0, max=1.0, help="Drop tokens below this share of the likeliest one's."
    ),
]
RepetitionPenaltyOption = Annotated[
    float,
    typer.Option("--repetition-penalty", min=0.01, help="Above 1: tokens seen before count less."),
]
SeedOption = Annotated[int, typer.Option(min=0, help="Of the sampling; every mode gives the same.")]
MaxNewTokensOption = Annotated[
    int, typer.Option("--max-new-tokens", min=1, help="Most tokens to generate.")
]
ThreadsOption = Annotated[
    int | None,
    typer.Option(min=1, max=64, help="Without it: one for each core.", show_default=False),
]
ContextLengthOption = Annotated[
    int | None,
    typer.Option(
        "--context-length",
        min=16,
        help="Tokens that prompt and answer may have together. Without it: what the bundle says.",
        show_default=False,
    ),
]
StopOption = Annotated[
    list[str] | None,
    typer.Option(help="End before this text; may be given several times.", show_default=False),
]
SystemOption = Annotated[
    str | None,
    typer.Option(help="The system message, ahead of the prompt.", show_default=False),
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
