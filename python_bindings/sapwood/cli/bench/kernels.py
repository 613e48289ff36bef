"""``sapwood bench kernels``: what N rows cost, against one row and against the machine's limits."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.table import Table

from sapwood.cli.common import (
    BundleArgument,
    JsonOption,
    choices,
    measuring,
    output_console,
    print_json,
)
from sapwood.cli.option_lists import with_options
from sapwood.cli.plot_file import check_plot
from sapwood.errors import SapwoodError
from sapwood.options import HOSTS, HostOptions, default_threads

if TYPE_CHECKING:
    from sapwood._runtime import Model, ModelCost

EXAMPLE = "Example:  sapwood bench kernels --threads 2 --plot cost.png --json"

ROWS = (1, 2, 3, 4, 6, 8, 12, 16, 24, 32, 48, 64)
CONTEXTS = (128, 1024)
PREFILL_TOKENS = 512
PREFILL_CHUNK = 256  # rows a pass


@dataclass(frozen=True)
class Round:
    """Everything measured once, close together in time."""

    milliseconds: dict[tuple[str, int, int], float]  # by what, rows and context
    bandwidth: float  # bytes a second that all threads read
    peak: float  # int8 multiply-accumulates a second between registers
    barrier: float  # seconds

    def limit(self, cost: ModelCost, rows: int) -> float:
        """The least milliseconds that the linear layers need: for memory or for arithmetic."""
        arithmetic = rows * cost.linear_multiplies / self.peak
        return 1000 * max(cost.linear_bytes / self.bandwidth, arithmetic)


@with_options(without=("host",))
def kernels(
    bundle: BundleArgument = None,
    repeats: Annotated[
        int, typer.Option(min=1, max=1000, help="Rounds over all measurements; medians are shown.")
    ] = 11,
    hosts: Annotated[
        str, typer.Option(help="Hosts that run the whole model, separated by commas.")
    ] = "native",
    shape: Annotated[
        str,
        typer.Option(
            help="Instead of a bundle: random weights of this size, e.g. qwen2.5-1.5b.",
            show_default=False,
        ),
    ] = "",
    other_flavour: Annotated[
        Path | None,
        typer.Option(
            help="A bundle of the same model whose ExecuTorch program is of the other flavour: "
            "with executorch among the hosts, both are measured.",
            show_default=False,
        ),
    ] = None,
    plot: Annotated[
        Path | None,
        typer.Option(help="Also draw cost against rows, with the machine's limit, to this PNG."),
    ] = None,
    as_json: JsonOption = False,
    *,
    host_options: HostOptions,
) -> None:
    """Measure linears, attention and the whole model for 1 to 64 rows, at 128 and 1,024 tokens.

    The machine's read bandwidth and int8 peak are measured in the same run, and everything is
    interleaved round by round, so that a drifting machine hits all figures alike.
    """
    if plot is not None:
        check_plot(plot)
    if shape and (bundle is not None or hosts != "native"):
        raise SapwoodError("--shape measures random weights on the native host, not a bundle")
    names = choices("--hosts", hosts, HOSTS)
    if other_flavour is not None and "executorch" not in names:
        raise SapwoodError("--other-flavour is for the host executorch: add it to --hosts")
    report = measure(bundle, shape, host_options, repeats, names, other_flavour)
    if plot is not None:
        from sapwood.cli.bench import kernel_plot

        kernel_plot.draw(report, plot)
    if as_json:
        print_json(report)
    else:
        _print(report)


def measure(
    bundle: str | None,
    shape: str,
    options: HostOptions,
    repeats: int,
    hosts: list[str],
    other_flavour: Path | None = None,
) -> dict[str, Any]:
    """The object that ``--json`` prints."""
    from sapwood import _runtime
    from sapwood.paths import resolve_bundle

    folder = "" if shape else str(resolve_bundle(bundle))
    count = options["threads"] or default_threads()
    cost = _runtime.ModelCost(
        folder,
        shape=shape,
        threads=count,
        max_rows=max(ROWS),
        max_context=max(*CONTEXTS, PREFILL_TOKENS),
        kv=options["kv"],
    )
    models = _open_models(cost, Path(folder), hosts, other_flavour, count)
    rounds: list[Round] = []
    for number in measuring(range(repeats + 1)):
        found = _round(cost, models)
        if number:  # the first one warms up
            rounds.append(found)
    return _report(cost, rounds, count, options["kv"])


def _open_models(
    cost: ModelCost, folder: Path, hosts: list[str], other_flavour: Path | None, threads: int
) -> dict[str, Model]:
    """By what the report calls them: ``model``, ``model on onnxruntime``, and so on."""
    from sapwood.hosts import open_model_to_time
    from sapwood.manifest import read_manifest
    from sapwood.paths import resolve_bundle

    places = [(host, folder) for host in hosts]
    if other_flavour is not None:
        other = resolve_bundle(other_flavour)
        targets = [read_manifest(place)["target"] for place in (folder, other)]
        if targets[0]["spec"] != targets[1]["spec"]:
            raise SapwoodError(f"--other-flavour: {other} is not of the model of {folder}")
        places.append(("executorch", other))
    models: dict[str, Model] = {}
    for host, place in places:
        name = "model" if host == "native" else f"model on {host}"
        if host == "executorch":
            target = read_manifest(place)["target"]
            name += f" {target.get('executorch', {}).get('flavour', '')}".rstrip()
        if name in models:
            raise SapwoodError(f"--other-flavour: {place} holds the flavour of {folder}")
        models[name] = open_model_to_time(
            cost, place, host=host, threads=threads, max_rows=PREFILL_CHUNK
        )
    return models


def _round(cost: ModelCost, models: dict[str, Model]) -> Round:
    found: dict[tuple[str, int, int], float] = {}
    for rows in ROWS:
        found["linears", rows, 0] = cost.linears(rows)
        for context in CONTEXTS:
            found["attention", rows, context] = cost.attention(rows, context)
            for name, model in models.items():
                found[name, rows, context] = cost.model(model, rows, context)
    for name, model in models.items():
        what = name.replace("model", "prefill")
        found[what, PREFILL_TOKENS, 0] = cost.prefill(model, PREFILL_TOKENS)
    return Round(found, cost.read_bandwidth(), cost.int8_peak(), cost.barrier_seconds())


def _report(cost: ModelCost, rounds: list[Round], threads: int, kv: str) -> dict[str, Any]:
    from sapwood import _runtime

    results = []
    for what, rows, context in sorted(rounds[0].milliseconds):
        key, one = (what, rows, context), (what, 1, context)
        native = (what.split(" on ")[0], rows, context)
        milliseconds = median(each.milliseconds[key] for each in rounds)
        # Ratios within a round, so that what slows a whole round down cancels.
        reads_weights = what != "attention"
        results.append(
            {
                "what": what,
                "rows": rows,
                "context": context,
                "threads": threads,
                "ms": milliseconds,
                "ratio": median(each.milliseconds[key] / each.milliseconds[one] for each in rounds)
                if one in rounds[0].milliseconds
                else None,
                # Of the same rows on the native host.
                "of_native": median(
                    each.milliseconds[key] / each.milliseconds[native] for each in rounds
                )
                if native != key and native in rounds[0].milliseconds
                else None,
                "share_of_limit": median(
                    each.limit(cost, rows) / each.milliseconds[key] for each in rounds
                )
                if reads_weights
                else None,
                "gigabytes_per_second": cost.linear_bytes / milliseconds / 1e6
                if reads_weights
                else None,
                "gigamultiplies_per_second": rows * cost.linear_multiplies / milliseconds / 1e6
                if reads_weights
                else None,
            }
        )
    return {
        "kernels": _runtime.active_kernels(),
        "threads": threads,
        "kv": kv,
        "read_gigabytes_per_second": median(each.bandwidth for each in rounds) / 1e9,
        "int8_peak_gigamultiplies_per_second": median(each.peak for each in rounds) / 1e9,
        "barrier_microseconds": median(each.barrier for each in rounds) * 1e6,
        "linear_megabytes": cost.linear_bytes / 1e6,
        "results": results,
    }


def _print(report: dict[str, Any]) -> None:
    if not report["results"]:
        raise SapwoodError("bench kernels: nothing was measured")
    console = output_console()
    table = Table(
        "what",
        "rows",
        "context",
        "ms",
        "of one row",
        "of native",
        "GB/s",
        "GMAC/s",
        "of the limit",
        box=None,
    )
    for result in report["results"]:
        table.add_row(
            result["what"],
            str(result["rows"]),
            str(result["context"] or "-"),
            f"{result['ms']:.2f}",
            _cell(result["ratio"], "{:.2f}x"),
            _cell(result["of_native"], "{:.2f}x"),
            _cell(result["gigabytes_per_second"], "{:.1f}"),
            _cell(result["gigamultiplies_per_second"], "{:.0f}"),
            _cell(result["share_of_limit"], "{:.0%}"),
        )
    console.print(table)
    console.print(
        f"{report['kernels']} kernels, {report['threads']} threads, {report['kv']} KV cache; this "
        f"machine reads "
        f"{report['read_gigabytes_per_second']:.1f} GB/s and multiplies "
        f"{report['int8_peak_gigamultiplies_per_second']:.0f} GMAC/s; a barrier takes "
        f"{report['barrier_microseconds']:.2f} us; medians",
        style="dim",
    )


def _cell(value: float | None, pattern: str) -> str:
    return "-" if value is None else pattern.format(value)
