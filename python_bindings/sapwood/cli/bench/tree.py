"""``sapwood bench tree``: what a step costs beside the model."""

from __future__ import annotations

from typing import Annotated, Any

import typer
from rich.table import Table

from sapwood.cli.common import JsonOption, choices, output_console, print_json
from sapwood.options import LOOKUP_DRAFTERS

EXAMPLE = "Example:  sapwood bench tree --nodes 16 --json"

PARTS = {
    "grow": "grow the tree",
    "layout": "lay it out as rows",
    "verify": "walk it, greedy",
    "follow": "drafter takes the tokens",
    "observe": "drafter takes the rows",
    "select_row": "eight likeliest of a row",
}


def tree(
    nodes: Annotated[int, typer.Option(min=1, max=256, help="Nodes of the tree.")] = 16,
    vocabulary: Annotated[
        int, typer.Option(min=64, max=1_000_000, help="Logits of a row.")
    ] = 49_152,
    rounds: Annotated[
        int, typer.Option(min=1, max=100_000, help="Trees; medians are shown.")
    ] = 500,
    drafters: Annotated[
        str, typer.Option(help="Drafters to measure, separated by commas.")
    ] = "mix,ngram,successor",
    as_json: JsonOption = False,
) -> None:
    """Measure growing, laying out, verifying and learning from a tree, in microseconds, no model.

    The text repeats itself mostly and the logits are random, so that every drafter has enough to
    grow a whole tree from.
    """
    from sapwood import _runtime

    names = choices("--drafters", drafters, LOOKUP_DRAFTERS)
    results: dict[str, dict[str, Any]] = {}
    for name in names:
        cost = _runtime.tree_cost(name, vocabulary=vocabulary, nodes=nodes, rounds=rounds)
        results[name] = {part: getattr(cost, part) for part in PARTS}
    report = {"nodes": nodes, "vocabulary": vocabulary, "microseconds": results}
    if as_json:
        print_json(report)
        return
    table = Table("microseconds", *names, box=None)
    for part, label in PARTS.items():
        table.add_row(label, *(f"{results[name][part]:.1f}" for name in names))
    console = output_console()
    console.print(table)
    console.print(f"{nodes} nodes, {vocabulary:,} tokens, medians of {rounds}", style="dim")
