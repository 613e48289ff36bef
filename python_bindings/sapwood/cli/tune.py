"""``sapwood tune``: measures what a verify pass costs here, for the budget of the trees."""

from __future__ import annotations

from collections.abc import Iterator
from statistics import median
from typing import Annotated, Any

import typer
from rich.table import Table

from sapwood.cli.common import (
    BundleArgument,
    JsonOption,
    measuring,
    output_console,
    print_json,
)
from sapwood.cli.option_lists import with_options
from sapwood.errors import SapwoodError
from sapwood.options import HostOptions, default_threads

EXAMPLE = "Example:  sapwood tune bundles/smollm2 --threads 2 --json"

ROWS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32)
CONTEXTS = (128, 1024)


@with_options()
def tune(
    bundle: BundleArgument = None,
    repeats: Annotated[
        int, typer.Option(min=1, max=1000, help="Rounds over all sizes; medians are kept.")
    ] = 9,
    survey: Annotated[
        bool,
        typer.Option(help="Also ask the target what it says after every token, once for a bundle."),
    ] = True,
    as_json: JsonOption = False,
    *,
    host_options: HostOptions,
) -> None:
    """Measure passes of 1 to 32 rows over 128 and 1,024 tokens, and keep the curve.

    Engines of this bundle on this device, with this host, KV cache and number of threads, find it
    and size their trees by it. Without it they learn the costs from their own steps. The survey
    gives their drafters something to guess where neither text nor target has said anything yet.
    """
    report = measure(bundle, host_options, repeats, survey=survey)
    if as_json:
        print_json(report)
    else:
        _print(report)


def measure(
    bundle: str | None, options: HostOptions, repeats: int, *, survey: bool
) -> dict[str, Any]:
    """Measures, writes the cache and returns the object that ``--json`` prints."""
    from dataclasses import asdict

    from sapwood import _runtime
    from sapwood.cost_cache import CostKey, save_costs
    from sapwood.hosts import open_model_to_time
    from sapwood.manifest import read_manifest
    from sapwood.paths import resolve_bundle
    from sapwood.survey_cache import make_survey, survey_path
    from sapwood.tokenizer import Tokenizer

    folder = resolve_bundle(bundle)
    host, kv = options["host"], options["kv"]
    count = options["threads"] or default_threads()
    manifest = read_manifest(folder)
    longest = manifest["target"]["spec"]["context_length"]
    contexts = [context for context in CONTEXTS if context + max(ROWS) <= longest]
    if not contexts:
        contexts = [max(0, longest - max(ROWS))]
    cost = _runtime.ModelCost(
        str(folder), threads=count, max_rows=max(ROWS), max_context=max(*contexts, 1), kv=kv
    )
    model = open_model_to_time(cost, folder, host=host, threads=count)
    samples: dict[tuple[int, int], list[float]] = {}
    for number in measuring(range(repeats + 1)):
        for context in contexts:
            for rows in ROWS:
                milliseconds = cost.model(model, rows, context)
                if number:  # the first round warms up
                    samples.setdefault((context, rows), []).append(milliseconds)
    medians = [[median(samples[context, rows]) for rows in ROWS] for context in contexts]
    key = CostKey.of(manifest, host=host, threads=count, kv=kv)
    try:
        path = save_costs(key, contexts, list(ROWS), medians)
        if survey and not survey_path(manifest).is_file():
            make_survey(model, Tokenizer.from_bundle(folder, manifest), manifest, _asking)
    except OSError as error:
        raise SapwoodError(
            f"{error.filename or key.path()}: {error.strerror}; what was measured could not be kept"
        ) from error
    return {
        "path": str(path),
        "device": asdict(key),
        "contexts": contexts,
        "rows": list(ROWS),
        "milliseconds": medians,
        "survey": str(survey_path(manifest)) if survey_path(manifest).is_file() else None,
    }


def _asking(batches: range) -> Iterator[int]:
    return measuring(batches, lambda _: "asking the target")


def _print(report: dict[str, Any]) -> None:
    table = Table(
        "rows", *(f"ms at {context:,} tokens" for context in report["contexts"]), box=None
    )
    for index, rows in enumerate(report["rows"]):
        cells = []
        for line in report["milliseconds"]:
            cells.append(f"{line[index]:.2f}  ({line[index] / line[0]:.2f}x)")
        table.add_row(str(rows), *cells)
    console = output_console()
    console.print(table)
    device = report["device"]
    console.print(
        f"{device['processor']}, {device['kernels']} kernels, {device['threads']} threads, "
        f"{device['host']} host, {device['kv']} KV cache; "
        f"kept in {report['path']}"
        + (f"; what the target says after a token: {report['survey']}" if report["survey"] else ""),
        style="dim",
        soft_wrap=True,
    )
