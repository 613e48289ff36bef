"""``sapwood bench tree``: what a step costs beside the model."""

from __future__ import annotations

import time
from statistics import median
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
    profile = {
        str(length): _classify_microseconds(length, rounds) for length in (64, 512, 4096, 65536)
    }
    report = {
        "nodes": nodes,
        "vocabulary": vocabulary,
        "microseconds": results,
        "profile_microseconds_by_bytes": profile,
    }
    if as_json:
        print_json(report)
        return
    table = Table("microseconds", *names, box=None)
    for part, label in PARTS.items():
        table.add_row(label, *(f"{results[name][part]:.1f}" for name in names))
    console = output_console()
    console.print(table)
    console.print(f"{nodes} nodes, {vocabulary:,} tokens, medians of {rounds}", style="dim")
    times = ", ".join(f"{each:.1f} ({int(length):,} bytes)" for length, each in profile.items())
    console.print(f"telling what a prompt asks for, once an answer: {times}", highlight=False)


def _classify_microseconds(length: int, rounds: int) -> float:
    """The median of classifying a prompt of so many bytes."""
    from sapwood import _runtime

    sentence = "Compute the sum of 12 and 30, then write {a} story about it.\n"
    prompt = (sentence * (length // len(sentence) + 1))[:length]
    times = []
    for _ in range(rounds):
        begin = time.perf_counter()
        _runtime.guess_scenario(prompt)
        times.append(time.perf_counter() - begin)
    return median(times) * 1e6
