"""``sapwood distill``: a draft for a target, made from the target alone."""

from __future__ import annotations

import importlib.util
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.progress import BarColumn, Progress, TextColumn, TimeElapsedColumn

from sapwood.cli.common import JsonOption, messages_console, output_console, print_json
from sapwood.errors import SapwoodError

if TYPE_CHECKING:
    from sapwood_export.distill.data import DataProgress

EXAMPLE = "Example:  sapwood distill --target bundles/smollm2 --out drafts/smollm2 --minutes 240"

DATA_SHARE = 0.4  # of the minutes, at most; training has the rest
_LINE_SECONDS = 30.0  # between two lines of progress where there is no terminal


class Kind(str, Enum):
    """What is trained."""

    head = "head"
    parallel_heads = "parallel-heads"


class Device(str, Enum):
    """Where the draft is trained; the target writes its data on the CPU."""

    auto = "auto"
    cpu = "cpu"
    cuda = "cuda"


def distill(
    out: Annotated[Path, typer.Option("--out", "-o", help="The draft folder to write.")],
    target: Annotated[
        str | None,
        typer.Option(
            metavar="SOURCE",
            help="A bundle, or what `sapwood export` takes: that is exported first. Without it: "
            "the default bundle of scripts/run.",
            show_default=False,
        ),
    ] = None,
    minutes: Annotated[
        float, typer.Option(min=0.01, help="For this run. At most 40 % of it goes into data.")
    ] = 180.0,
    tokens: Annotated[
        int, typer.Option(min=1, help="Tokens of data that the target writes, all runs together.")
    ] = 2_500_000,
    kind: Annotated[
        Kind, typer.Option(help="head: one layer, a token a pass. parallel-heads: several at once.")
    ] = Kind.head,
    work: Annotated[
        Path | None,
        typer.Option(
            help="Where data and checkpoints are kept between runs. Without it: OUT.work.",
            show_default=False,
        ),
    ] = None,
    disk: Annotated[
        float, typer.Option(min=0.001, help="GB that the data may take at most.")
    ] = 15.0,
    memory: Annotated[
        float, typer.Option(min=0.001, help="GB for the conversations that are written at once.")
    ] = 3.0,
    seed: Annotated[int, typer.Option(min=0, help="Of the data and of the training.")] = 0,
    threads: Annotated[
        int | None,
        typer.Option(min=1, max=64, help="Without it: one for each core.", show_default=False),
    ] = None,
    device: Annotated[
        Device,
        typer.Option(help="What trains: one GPU with CUDA where torch finds one, or the CPU."),
    ] = Device.auto,
    data_only: Annotated[
        bool, typer.Option("--data-only", help="Write the data and stop: needs no torch.")
    ] = False,
    graph: Annotated[
        bool,
        typer.Option(
            "--graph", help="Write draft.onnx as well, the draft's pass as a graph: needs onnx."
        ),
    ] = False,
    as_json: JsonOption = False,
) -> None:
    """Train a small draft that guesses what the target says next, from what the target writes.

    The target holds conversations with itself; a small head learns from its hidden states. A run
    that was stopped, by Ctrl-C or by its minutes, goes on where it was: run the same command again.
    The answers of the target never change, whatever the draft guesses.
    """
    from sapwood_export.distill.data import DataOptions, make_data

    if not data_only and importlib.util.find_spec("torch") is None:
        raise SapwoodError(
            "distill: training needs torch; pip install 'sapwood[onnx]', or use --data-only"
        )
    if graph and importlib.util.find_spec("onnx_ir") is None:
        raise SapwoodError("distill: --graph needs the ONNX export; pip install 'sapwood[onnx]'")
    trained_on = None if data_only else _device(device)
    begun = time.monotonic()
    work = work or out.with_name(out.name + ".work")
    with _progress() as show:
        bundle = _bundle_of(target, work, show)
        options = DataOptions(
            tokens=tokens,
            seed=seed,
            threads=threads,
            disk_bytes=int(disk * 1e9),
            memory_bytes=int(memory * 1e9),
        )
        share = 1.0 if data_only else DATA_SHARE
        data_until = begun + 60 * minutes * share
        speed = 0.0

        def on_data(now: DataProgress) -> None:
            nonlocal speed
            speed = now.tokens_per_second
            show(_data_line(now), min(1.0, now.tokens / now.goal))

        data = make_data(
            bundle, work / "data", options, on_data, lambda: time.monotonic() >= data_until
        )
        if data["shards"] == 0:
            raise SapwoodError(
                f"{work / 'data'}: no conversation was finished in time; give more --minutes"
            )
        training = None
        if trained_on is not None:
            left = max(minutes - (time.monotonic() - begun) / 60, 0.01)
            training = _train(bundle, work, out, kind, left, seed, trained_on, graph, show)
    if as_json:
        print_json(
            {
                "out": None if data_only else str(out),
                "work": str(work),
                "seconds": time.monotonic() - begun,
                "data": data,
                "data_tokens_per_second": speed,  # of this run; 0 if all was there
                "training": training,
            }
        )
        return
    console = output_console()
    mix = ", ".join(f"{name} {part['tokens']:,}" for name, part in data["mix"].items())
    console.print(f"data: {data['tokens']:,} tokens ({mix})", markup=False, soft_wrap=True)
    console.print(str(work / "data" if data_only else out), markup=False, soft_wrap=True)


def _device(wanted: Device) -> str:
    """What to train on; an error where that is a GPU and there is none."""
    from sapwood_export.distill.training import CPU, CUDA, cuda_is_there

    if wanted is Device.cuda and not cuda_is_there():
        raise SapwoodError("distill: torch finds no GPU with CUDA here; use --device cpu")
    return CPU if wanted is Device.cpu or not cuda_is_there() else CUDA


_Show = Callable[[str, float], None]  # what is done, and which share of it


def _train(
    bundle: Path,
    work: Path,
    out: Path,
    kind: Kind,
    minutes: float,
    seed: int,
    device: str,
    graph: bool,
    show: _Show,
) -> dict[str, Any]:
    from sapwood_export.distill.train import TrainingOptions, train

    options = TrainingOptions(kind=kind.name, minutes=minutes, seed=seed, device=device)
    begun = time.monotonic()

    def report(line: str) -> None:
        show(line, min(1.0, (time.monotonic() - begun) / (60 * minutes)))

    checkpoints = work / f"checkpoints-{kind.value}"
    return train(bundle, work / "data", checkpoints, out, options, report, graph)


def _bundle_of(target: str | None, work: Path, show: _Show) -> Path:
    """The target's bundle: the one named, or an export of what was named, kept in ``work``."""
    from sapwood.manifest import MANIFEST
    from sapwood.paths import resolve_bundle

    if target is None or (Path(target) / MANIFEST).is_file():
        return resolve_bundle(target)
    from sapwood_export.command import export

    bundle = work / "target"
    if not (bundle / MANIFEST).is_file():
        export(target, bundle, progress=lambda what, done, total: show(what, done / max(total, 1)))
    return bundle


def _data_line(now: DataProgress) -> str:
    return (
        f"data: {now.tokens:,} of {now.goal:,} tokens, {now.shards} shards, "
        f"{now.tokens_per_second:,.0f} tokens/s"
    )


@contextmanager
def _progress() -> Iterator[_Show]:
    """A bar on a terminal; elsewhere a line every half a minute."""
    if not sys.stderr.isatty():
        last = [-_LINE_SECONDS]

        def print_line(line: str, _share: float) -> None:
            if time.monotonic() - last[0] >= _LINE_SECONDS:
                last[0] = time.monotonic()
                print(line, file=sys.stderr, flush=True)

        yield print_line
        return
    with Progress(
        TextColumn("{task.description}", markup=False),
        BarColumn(),
        TimeElapsedColumn(),
        console=messages_console(),
        transient=True,
    ) as progress:
        task = progress.add_task("", total=1.0)
        yield lambda line, share: progress.update(task, description=line, completed=share)
