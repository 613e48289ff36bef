"""What ``sapwood bench suite`` shows to people."""

from __future__ import annotations

from typing import Any

from rich.table import Table

from sapwood.cli.common import output_console

_SIDE_BY_SIDE = 4  # columns of sides that a terminal has room for


def show(report: dict[str, Any]) -> None:
    """The object that ``--json`` prints, as a table by category."""
    modes = report["modes"]
    sides = modes | report["peers"]
    console = output_console()
    many = len(sides) > _SIDE_BY_SIDE
    console.print(_below_each_other(sides) if many else _by_category(sides, modes))
    if many:
        console.print("by category: --json, --html", style="dim")
    peaks = ", ".join(
        f"{name} {mode['peak_draft_slots']:.0f} (mean {mode['mean_draft_slots']:.1f})"
        for name, mode in modes.items()
    )
    spreads = ", ".join(
        f"{name} {each['median']:.2f}x "
        f"({each['lower_quartile']:.2f} to {each['upper_quartile']:.2f})"
        for name, each in ((name, mode["answer_speedup"]) for name, mode in sides.items())
        if each is not None and name != "plain"
    )
    differing = ", ".join(
        f"{name} on {mode['differing_prompts']}"
        for name, mode in modes.items()
        if name != report["ids_compared_with"]
    )
    if not report["ids_must_agree"]:
        equal = f"{report['verifier']} keeps the law of the text, not the tokens at a seed"
    else:
        equal = "all modes gave the same tokens" if report["equal_tokens"] else "TOKENS DIFFER"
    if spreads:
        console.print(f"over plain, median and quartiles of single answers: {spreads}")
    console.print(
        f"{report['questions']} prompts, temperature {report['temperature']:g}, drafter "
        f"{report['drafter']}, {report['threads']} threads, costs {report['cost_curve']}; "
        f"most KV slots beyond the text: {peaks}; {equal}"
        + (f" (other ids than {report['ids_compared_with']}: {differing})" if differing else ""),
        style="dim",
    )
    for name, peer in report["peers"].items():
        console.print(
            f"{name}: {peer['version']}; {peer['differs']}; {peer['equal_answers']} of "
            f"{report['questions']} answers are ours token for token",
            style="dim",
        )
    for name, reason in report["peers_left_out"].items():
        console.print(f"{name}: {reason}", style="dim")


def _by_category(sides: dict[str, Any], modes: dict[str, Any]) -> Table:
    table = Table("category", box=None, padding=(0, 2, 0, 0))
    for side in sides:
        table.add_column(f"{side}: tokens/s", justify="right")
        if side not in modes:
            continue
        table.add_column("a step", justify="right")
        table.add_column("rows", justify="right")
    categories = next(iter(modes.values()))["by_category"]
    for category in [*categories, "all"]:
        cells = []
        for name, side in sides.items():
            part = side if category == "all" else side["by_category"][category]
            ratio = "" if part["speedup"] is None else f" ({part['speedup']:.2f}x)"
            cells.append(f"{part['tokens_per_second']:.1f}{ratio}")
            if name not in modes:
                continue
            cells += [
                f"{part['mean_accepted_length']:.2f}",
                f"{part['mean_rows']:.1f}",
            ]
        table.add_row(category, *cells)
    return table


def _below_each_other(sides: dict[str, Any]) -> Table:
    """Where they would not fit beside each other: over all categories, a line a side."""
    table = Table("", box=None, padding=(0, 2, 0, 0))
    for heading in ("tokens/s", "over plain", "a step", "rows"):
        table.add_column(heading, justify="right")
    for name, side in sides.items():
        ratio = "" if side["speedup"] is None else f"{side['speedup']:.2f}x"
        steps = (f"{side['mean_accepted_length']:.2f}", f"{side['mean_rows']:.1f}")
        table.add_row(name, f"{side['tokens_per_second']:.1f}", ratio, *steps)
    return table
