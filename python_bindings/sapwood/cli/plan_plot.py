"""The picture of ``sapwood plan``: speed-up by length, and by acceptance."""

from __future__ import annotations

from pathlib import Path
from typing import Any

_OTHERS = (0.4, 0.6, 0.8)  # acceptance of the lines that the plan's is beside
_MARK: dict[str, Any] = {"marker": "o", "markersize": 10, "color": "C1", "linestyle": "none"}


def draw(report: dict[str, Any], path: Path) -> None:
    """Left: the plan's chains by length, beside those of other drafts at its costs. Right: the best
    chain by constant acceptance, and from where on there is one."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, (left, right) = pyplot.subplots(1, 2, figsize=(10, 4.2), layout="constrained")
    steps, chosen = report["steps"], report["best"]
    lengths = [step["length"] for step in steps]
    costs = [step["cost"] for step in steps]
    for other in _OTHERS:
        tokens = [sum(other**depth for depth in range(length + 1)) for length in lengths]
        speeds = [token / cost for token, cost in zip(tokens, costs, strict=True)]
        left.plot(lengths, speeds, color="0.75", linewidth=1)
        left.annotate(f"{other:g}", (lengths[-1], speeds[-1]), color="0.5", fontsize=8,
                      xytext=(3, 0), textcoords="offset points", va="center")  # fmt: skip
    left.plot(lengths, [step["speedup"] for step in steps], marker="o", markersize=4, label="plan")
    best = f"best: {chosen['length']} guesses, {chosen['speedup']:.2f}x"
    left.plot(chosen["length"], chosen["speedup"], label=best, **_MARK)
    left.set_xlim(right=lengths[-1] * 1.08)
    left.set_xlabel("guesses a step (grey: other constant acceptance)")
    left.set_xticks(lengths[:: max(1, len(lengths) // 8)])

    by_acceptance = report["by_acceptance"]
    right.plot(
        [each["acceptance"] for each in by_acceptance],
        [each["speedup"] for each in by_acceptance],
        label="the best chain",
    )
    threshold = report["break_even_acceptance"]
    if threshold is not None:
        right.axvline(threshold, color="0.5", linestyle=":", label=f"pays from {threshold:.3f} on")
    at = report["acceptance"][0]
    right.plot(at, chosen["speedup"], label="plan, at its first acceptance", **_MARK)
    right.set_xlabel("acceptance of a guess, the same at every depth")
    for axes in (left, right):
        axes.axhline(1, color="0.5", linestyle="--", linewidth=1)
        axes.set_ylabel("speed-up over plain decoding")
        axes.set_ylim(bottom=0)
        axes.grid(alpha=0.3)
        axes.legend(frameon=False, fontsize=9)
    figure.savefig(path, dpi=120)
    pyplot.close(figure)
