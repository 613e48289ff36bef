"""The picture of ``sapwood bench draft``: predicted uncertainty against what came."""

from __future__ import annotations

from pathlib import Path
from typing import Any


def draw(report: dict[str, Any], path: Path) -> None:
    """A reliability plot: the diagonal is a network that knows what it does not know."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    calibration = report["calibration"]
    bins = calibration["bins"]
    figure, axes = pyplot.subplots(figsize=(5.5, 5), layout="constrained")
    axes.plot([0, 1], [0, 1], color="0.6", linestyle="--", label="perfect")
    largest = max(each["count"] for each in bins)
    axes.scatter(
        [each["predicted"] for each in bins],
        [each["seen"] for each in bins],
        s=[30 + 270 * each["count"] / largest for each in bins],
        alpha=0.7,
        label="predictions by tenths, area by their number",
    )
    axes.set_xlim(0, 1)
    axes.set_ylim(0, 1)
    axes.set_aspect("equal")
    axes.set_xlabel("predicted probability of rejection")
    axes.set_ylabel("1 - sum of min(p, q)")
    axes.set_title(
        f"{report['draft']}: expected calibration error "
        f"{calibration['expected_calibration_error']:.3f}"
    )
    axes.grid(alpha=0.3)
    axes.legend(frameon=False, loc="upper left")
    figure.savefig(path, dpi=120)
    pyplot.close(figure)
