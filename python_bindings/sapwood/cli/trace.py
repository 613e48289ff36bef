"""``sapwood trace``: record what a run does, and say where the time went."""

from __future__ import annotations

import time
from dataclasses import asdict
from pathlib import Path
from typing import Annotated

import typer
from rich.table import Table

from sapwood import _runtime
from sapwood.cli.common import BundleArgument, JsonOption, SystemOption, output_console, print_json
from sapwood.cli.option_lists import with_options
from sapwood.cli.plot_file import check_plot
from sapwood.errors import SapwoodError
from sapwood.options import AnswerOptions, EngineOptions

app = typer.Typer(
    name="trace",
    help="Record what a run does as a Perfetto trace, and say where its time went.",
    epilog="Example:  sapwood trace run -o out.perfetto-trace --prompt 'Name three trees.'",
    no_args_is_help=True,
    rich_markup_mode="rich",
)

EXAMPLE_RUN = (
    "Example:  sapwood trace run bundles/smollm2 -o out.perfetto-trace --prompt 'Name three trees.'"
)
EXAMPLE_EXPLAIN = "Example:  sapwood trace explain out.perfetto-trace --plot trace.png"

_CAPACITY = 1 << 18  # events; a step records about ten
_TEMPERATURE_SECONDS = 0.25


@app.command("run", epilog=EXAMPLE_RUN)
@with_options()
def run(
    bundle: BundleArgument = None,
    prompt: Annotated[str, typer.Option("--prompt", "-p", help="What to answer.")] = "",
    out: Annotated[
        Path | None,
        typer.Option("--output", "-o", help="The trace file to write.", show_default=False),
    ] = None,
    system: SystemOption = None,
    as_json: JsonOption = False,
    *,
    engine_options: EngineOptions,
    answer_options: AnswerOptions,
) -> None:
    """Answer one prompt and write what the runtime did meanwhile, for ui.perfetto.dev.

    The trace holds stages, counts and times, never a word of prompt or answer.
    """
    from sapwood.engine import Engine
    from sapwood.sensors import celsius

    if not prompt:
        raise SapwoodError("no prompt; give one with --prompt")
    if out is None:
        raise SapwoodError("no file to write; give one with -o FILE.perfetto-trace")
    engine = Engine(bundle, **engine_options)
    ring = engine.record(_CAPACITY)
    temperature_name = [name for name, *_ in _runtime.trace_names()].index("temperature")
    measured = 0.0
    with engine.generate(prompt, system=system, **answer_options) as generation:
        for _ in generation:
            if time.monotonic() - measured > _TEMPERATURE_SECONDS:
                measured = time.monotonic()
                if (now := celsius()) is not None:
                    ring.record(temperature_name, value=now, begin_ns=time.monotonic_ns())
    data = ring.perfetto_trace()
    events = min(ring.recorded, ring.capacity)
    unfinished = out.with_name(out.name + ".unfinished")
    try:
        unfinished.write_bytes(data)
        unfinished.replace(out)
    except OSError as error:
        raise SapwoodError(f"{out}: cannot be written: {error.strerror}") from error
    finally:
        unfinished.unlink(missing_ok=True)
    report = {
        "file": str(out),
        "events": events,
        "overwritten": ring.recorded - events,
        "stats": generation.stats.as_dict(),
    }
    if as_json:
        print_json(report)
        return
    console = output_console()
    console.print(
        f"{out}: {events:,} events of {generation.stats.steps} steps; open it at "
        "ui.perfetto.dev, or: sapwood trace explain",
        markup=False,
        highlight=False,
        soft_wrap=True,
    )


@app.command("explain", epilog=EXAMPLE_EXPLAIN)
def explain_file(
    file: Annotated[Path, typer.Argument(metavar="FILE", help="A trace of `sapwood trace run`.")],
    plot: Annotated[
        Path | None,
        typer.Option(
            help="Also draw it, with a stretch of the trace, as a PNG file.", show_default=False
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Say where a trace's time went, and what to change about the usual bottlenecks."""
    from sapwood.trace.explain import explain
    from sapwood.trace.perfetto_file import from_perfetto

    try:
        data = file.read_bytes()
    except OSError as error:
        raise SapwoodError(f"{file}: cannot be read: {error.strerror}") from error
    if plot is not None:
        check_plot(plot)
    try:
        events = from_perfetto(data)
        told = explain(events)
    except SapwoodError as error:
        raise SapwoodError(f"{file}: {error}") from None
    if plot is not None:
        from sapwood.cli import trace_plot

        trace_plot.draw(told, events, plot)
    if as_json:
        print_json(asdict(told))
        return
    console = output_console()
    console.print(
        f"{told.steps} steps, {told.milliseconds_a_step:.2f} ms and {told.tokens_a_step:.2f} "
        "tokens each",
        highlight=False,
    )
    table = Table(box=None, show_header=False, pad_edge=False)
    for name, share in told.shares.items():
        table.add_row(name, f"{100 * share:.1f} %", "█" * round(40 * share))
    console.print(table)
    if not told.findings:
        console.print("none of the usual bottlenecks", highlight=False)
    for finding in told.findings:
        console.print(f"\n{finding.rule}: {finding.words}", highlight=False, soft_wrap=True)
        console.print(f"  {finding.advice}", highlight=False, soft_wrap=True)
