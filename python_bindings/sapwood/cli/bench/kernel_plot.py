"""The picture of ``sapwood bench kernels``: cost against rows, and what the machine allows."""

from __future__ import annotations

from pathlib import Path
from typing import Any


def draw(report: dict[str, Any], path: Path) -> None:
    """Milliseconds of a pass by rows: linears, and the model at each context, over the roofline."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot
    from matplotlib.ticker import ScalarFormatter

    figure, axes = pyplot.subplots(figsize=(8, 5), layout="constrained")
    series: dict[tuple[str, int], list[tuple[int, float]]] = {}
    for result in report["results"]:
        if result["what"] == "linears" or result["what"].startswith("model"):
            key = (result["what"], result["context"])
            series.setdefault(key, []).append((result["rows"], result["ms"]))
    for (what, context), points in series.items():
        label = f"{what}, {context:,} tokens" if context else what
        points.sort()
        axes.plot(*zip(*points, strict=True), marker="o", markersize=4, label=label)

    rows = [row for row, _ in next(iter(series.values()))]
    linears = {r["rows"]: r for r in report["results"] if r["what"] == "linears"}
    limit = [linears[row]["ms"] * linears[row]["share_of_limit"] for row in rows]
    axes.fill_between(rows, limit, color="0.88", zorder=0)
    axes.plot(rows, limit, color="0.45", linestyle="--", label="limit: memory or arithmetic")

    axes.set_xscale("log", base=2)
    axes.set_yscale("log", base=2)
    axes.set_xticks(rows, [str(row) for row in rows])
    axes.yaxis.set_major_formatter(ScalarFormatter())
    axes.set_xlabel("rows verified in one pass")
    axes.set_ylabel("milliseconds a pass")
    axes.set_title(
        f"Cost of a pass, {report['kernels']}, {report['threads']} threads "
        f"({report['read_gigabytes_per_second']:.0f} GB/s, "
        f"{report['int8_peak_gigamultiplies_per_second']:.0f} GMAC/s)"
    )
    axes.grid(alpha=0.3, which="both")
    axes.legend(frameon=False)
    figure.savefig(path, dpi=120)
    pyplot.close(figure)
