"""``sapwood verify``: the exactness report, every verifier checked by enumeration."""

from __future__ import annotations

from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from sapwood.cli.common import JsonOption, output_console, print_json
from sapwood.errors import SapwoodError

if TYPE_CHECKING:
    from sapwood._runtime import Exactness

EXAMPLE = "Example:  sapwood verify --json"

_OPTIMUM = (
    "linear program over all valid one-step verifiers of the same random drafts; "
    "at depth one the optimal transport bound"
)


def verify(
    vocabulary: Annotated[
        int, typer.Option(min=2, max=6, help="Tokens of the enumerated models.")
    ] = 4,
    depth: Annotated[
        int, typer.Option(min=1, max=3, help="Depth of the trees; texts are one token longer.")
    ] = 2,
    nodes: Annotated[int, typer.Option(min=1, max=8, help="Nodes of the trees, at most.")] = 4,
    models: Annotated[
        int, typer.Option(min=1, max=100, help="Random model pairs behind each figure.")
    ] = 2,
    comparisons: Annotated[
        int,
        typer.Option(min=1, max=100000, help="Random model pairs that verifiers are compared on."),
    ] = 100,
    as_json: JsonOption = False,
) -> None:
    """Prove that no verifier changes the text's law, by exact enumeration on tiny models.

    Every draw and every decision is a branch with its probability; nothing is sampled. The
    deviation is the total variation between the law of the first tokens and plain decoding's.
    """
    report = examine(vocabulary, depth, nodes, models, comparisons)
    if as_json:
        print_json(report)
    else:
        _print(report)
    if not report["passed"]:
        raise SapwoodError(
            f"a verifier that should be lossless deviates by {report['largest_deviation']:.3g}; "
            "this is a bug, please report it with the output of `sapwood verify --json`"
        )


def examine(
    vocabulary: int, depth: int, nodes: int, models: int, comparisons: int
) -> dict[str, Any]:
    """The object that ``--json`` prints."""
    from sapwood import _runtime

    rows = _runtime.exactness_report(vocabulary=vocabulary, depth=depth, nodes=nodes, models=models)
    trees = _runtime.compare_on_trees(comparisons)
    chains = _runtime.compare_on_chains(comparisons)
    largest = max(row.deviation for row in rows if row.lossless)
    return {
        "results": [_result(row) for row in rows],
        "tolerance": _runtime.EXACT_TOLERANCE,
        "largest_deviation": largest,
        "passed": largest <= _runtime.EXACT_TOLERANCE,
        "optimum": _OPTIMUM,
        "trees": {
            "models": trees.models,
            "naive_multi_round": trees.naive,
            "rejection": trees.rejection,
            "traversal": trees.traversal,
            "optimum": trees.sampled_optimum,
            "target_draw_ranked": trees.ranked,
        },
        "chains": {
            "models": chains.models,
            "rejection": chains.rejection,
            "block": chains.block,
            "optimum": chains.optimum,
            "least_gain_of_block": chains.least_gain,
        },
    }


def _result(row: Exactness) -> dict[str, Any]:
    return {
        "name": row.name,
        "lossless": row.lossless,
        "deviation": row.deviation,
        "expected_accepted": row.expected_accepted,
        "optimum": row.optimum,
    }


def _print(report: dict[str, Any]) -> None:
    console = output_console()
    table = Table(
        "verifier / tree",
        "combinations",
        "largest deviation",
        "accepted",
        "of the optimum",
        box=None,
    )
    groups: dict[str, list[dict[str, Any]]] = {}
    for result in report["results"]:
        parts = result["name"].split("/")
        groups.setdefault(parts[0] if not result["lossless"] else "/".join(parts[:2]), []).append(
            result
        )
    for name, results in groups.items():
        accepted = sum(result["expected_accepted"] for result in results) / len(results)
        optimum = sum(result["optimum"] for result in results) / len(results)
        table.add_row(
            name,
            str(len(results)),
            f"{max(result['deviation'] for result in results):.2g}",
            f"{accepted:.3f}",
            f"{accepted / optimum:.1%}" if results[0]["lossless"] else "not valid",
        )
    console.print(table)
    trees, chains = report["trees"], report["chains"]
    console.print(
        f"trees, {trees['models']} models: naive multi-round {trees['naive_multi_round']:.3f}, "
        f"rejection {trees['rejection']:.3f}, traversal {trees['traversal']:.3f}, "
        f"optimum {trees['optimum']:.3f}; likeliest children and target_draw "
        f"{trees['target_draw_ranked']:.3f}",
        soft_wrap=True,
    )
    console.print(
        f"chains, {chains['models']} models: rejection {chains['rejection']:.3f}, "
        f"block {chains['block']:.3f}, optimum {chains['optimum']:.3f}",
        soft_wrap=True,
    )
    console.print(
        f"largest deviation of a lossless combination {report['largest_deviation']:.2g}, "
        f"tolerance {report['tolerance']:.0g}",
        soft_wrap=True,
    )
