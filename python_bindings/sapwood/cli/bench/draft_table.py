"""What ``sapwood bench draft`` shows to people."""

from __future__ import annotations

from typing import Any

from rich.table import Table

from sapwood.cli.common import output_console


def show(report: dict[str, Any]) -> None:
    """The object that ``--json`` prints, as tables."""
    console = output_console()
    depths = [each["depth"] for each in report["by_depth"]]
    table = Table(box=None, padding=(0, 1, 0, 0))
    table.add_column("category", no_wrap=True)
    for name in ("tokens", "covered", "chain", *(f"top {d}" for d in depths), "drawn 1"):
        table.add_column(name, justify="right", no_wrap=True)
    for name, part in [*report["by_category"].items(), ("all", report)]:
        greedy = {each["depth"]: each["greedy"] for each in part["by_depth"]}
        table.add_row(
            name,
            str(part["tokens"]),
            f"{part['covered']:.1%}",
            f"{part['chain_tokens_a_step']:.2f}",
            *(f"{greedy[depth]:.3f}" if depth in greedy else "" for depth in depths),
            f"{part['by_depth'][0]['sampled']:.3f}",
        )
    console.print(table)
    costs = Table("draft pass", box=None, padding=(0, 2, 0, 0))
    for name in ("rows", "ms", "of a target row"):
        costs.add_column(name, justify="right")
    for each in report["cost"]["passes"]:
        what = "over verified text" if each["over"] == "text" else "over guesses"
        share = f"{each['of_target_row']:.1%}"
        costs.add_row(what, str(each["rows"]), f"{each['ms']:.3f}", share)
    console.print(costs)
    found = report["calibration"]
    network = (
        "no uncertainty network"
        if found is None
        else f"uncertainty: expected calibration error {found['expected_calibration_error']:.3f}"
    )
    console.print(
        f"{report['draft']} ({report['kind']}) for {report['bundle']}, {report['questions']} "
        f"prompts, temperature {report['temperature']:g}; one row of the target "
        f"{report['cost']['target_row_ms']:.2f} ms at {report['cost']['context']} tokens, "
        f"{report['threads']} threads; {network}. top d: the likeliest token is the target's at "
        f"depth d, the tokens before taken as right; drawn: sum of min(p, q); chain: tokens a step "
        f"of greedy chains of {depths[-1]}.",
        style="dim",
        soft_wrap=True,
    )
