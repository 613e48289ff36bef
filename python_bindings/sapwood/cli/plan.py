"""``sapwood plan``: what speculation is worth, before anything is run."""

from __future__ import annotations

from dataclasses import asdict
from pathlib import Path
from typing import Annotated, Any

import typer
from rich.table import Table

from sapwood.cli.common import BundleArgument, JsonOption, output_console, print_json
from sapwood.cli.option_lists import with_options
from sapwood.cli.plan_sources import Given, gather
from sapwood.cli.plot_file import check_plot
from sapwood.options import HostOptions
from sapwood.plan import best, break_even, steps

EXAMPLE = (
    "Example:  sapwood plan --acceptance 0.8 --draft-cost 0.1 --cost-curve 1:1,4:1.1,8:1.6 "
    "--plot plan.png"
)


@with_options()
def plan(
    bundle: BundleArgument = None,
    acceptance: Annotated[
        str | None,
        typer.Option(
            help="Probability that a guess is accepted: one, or one a depth, separated by commas.",
            show_default=False,
        ),
    ] = None,
    decay: Annotated[
        float, typer.Option(help="What one --acceptance is multiplied by at every next depth.")
    ] = 1.0,
    draft_cost: Annotated[
        float | None,
        typer.Option(
            help="A pass of the draft, as a share of the target's over one row.",
            show_default=False,
        ),
    ] = None,
    cost_curve: Annotated[
        str | None,
        typer.Option(
            metavar="ROWS:COST,...",
            help="What the target's pass over so many rows costs, in any unit, from 1 row on.",
            show_default=False,
        ),
    ] = None,
    overhead: Annotated[
        float, typer.Option(help="The rest of a step, as a share of the target's pass.")
    ] = 0.0,
    figures: Annotated[
        Path | None,
        typer.Option(
            help="What `sapwood bench draft --json` printed: acceptance and costs of a draft.",
            show_default=False,
        ),
    ] = None,
    draft: Annotated[
        Path | None,
        typer.Option(
            help="Folder of a trained draft. Without it: the one that came with Sapwood.",
            show_default=False,
        ),
    ] = None,
    sampled: Annotated[
        bool,
        typer.Option("--sampled", help="Of a measured draft, the acceptance when sampling at 1."),
    ] = False,
    context: Annotated[
        int, typer.Option(min=0, help="Tokens in the cache, for a curve that was measured.")
    ] = 128,
    longest: Annotated[
        int | None,
        typer.Option(
            min=1,
            max=255,
            help="Guesses to look at. Without it: 16, or as far as the curve goes.",
            show_default=False,
        ),
    ] = None,
    plot: Annotated[
        Path | None,
        typer.Option(help="Also draw speed-up by length and by acceptance, to this PNG."),
    ] = None,
    as_json: JsonOption = False,
    *,
    host_options: HostOptions,
) -> None:
    """Compute tokens a step, speed-up and the best length of a chain, from acceptance and costs.

    From numbers: --acceptance and --draft-cost, and --cost-curve where more rows cost more than
    one. Or, what of these is not given, from a bundle: the costs that `sapwood tune` measured here,
    and the figures of its trained draft, those of its training or those of --figures.
    """
    if plot is not None:
        check_plot(plot)
    given = Given(
        bundle=bundle,
        acceptance=acceptance,
        decay=decay,
        draft_cost=draft_cost,
        cost_curve=cost_curve,
        overhead=overhead,
        figures=figures,
        draft=draft,
        sampled=sampled,
        context=context,
        longest=longest,
        host_options=host_options,
    )
    report = make_plan(given)
    if plot is not None:
        from sapwood.cli import plan_plot

        plan_plot.draw(report, plot)
    if as_json:
        print_json(report)
    else:
        _print(report)


def make_plan(given: Given) -> dict[str, Any]:
    """The object that ``--json`` prints."""
    found = gather(given)
    costs, acceptance = found.costs, found.acceptance
    chosen = best(acceptance, costs)
    tenths = [number / 20 for number in range(21)]
    return {
        "acceptance": acceptance,
        "draft_cost": costs.draft,
        "first_draft_cost": costs.draft if costs.first_draft is None else costs.first_draft,
        "one_pass": costs.one_pass,
        "overhead": costs.overhead,
        "cost_curve": [list(point) for point in costs.verify.points],
        "target_row_ms": found.target_row_ms,
        "steps": [asdict(step) for step in steps(acceptance, costs)],
        "best": asdict(chosen),
        "speculate": chosen.length > 0,
        "break_even_acceptance": break_even(costs, len(acceptance)),
        "by_acceptance": [
            asdict(best([each] * len(acceptance), costs)) | {"acceptance": each} for each in tenths
        ],
        "sources": found.sources,
    }


def _print(report: dict[str, Any]) -> None:
    console = output_console()
    table = Table(box=None, padding=(0, 2, 0, 0))
    for name in ("guesses", "acceptance", "accepted", "tokens a step", "cost", "speed-up"):
        table.add_column(name, justify="right")
    chosen = report["best"]["length"]
    for step in report["steps"]:
        length = step["length"]
        table.add_row(
            str(length),
            f"{report['acceptance'][length - 1]:.3f}" if length else "-",
            f"{step['accepted']:.3f}",
            f"{step['tokens']:.3f}",
            f"{step['cost']:.3f}",
            f"{step['speedup']:.3f}x" + (" <-" if length == chosen else "   "),
            style="bold" if length == chosen else None,
        )
    console.print(table)
    console.print(verdict(report), soft_wrap=True)
    console.print(
        "; ".join(f"{what}: {source}" for what, source in report["sources"].items())
        + "; cost: in passes of the target over one row",
        style="dim",
        soft_wrap=True,
    )


def verdict(report: dict[str, Any]) -> str:
    """What to do, in one line."""
    chosen, threshold = report["best"], report["break_even_acceptance"]
    if report["speculate"]:
        guesses = "1 token" if chosen["length"] == 1 else f"{chosen['length']} tokens"
        advice = f"Draft {guesses} a step: {chosen['speedup']:.2f}x"
        row = report["target_row_ms"]
        if row is not None:
            plain = 1000 / row
            advice += f", {plain * chosen['speedup']:.0f} tokens/s instead of {plain:.0f}"
    else:
        advice = "Do not speculate: plain decoding is the fastest"
    if threshold is None:
        return f"{advice}. At these costs no acceptance would pay."
    return f"{advice}. At these costs speculation pays above an acceptance of {threshold:.3f}."
