"""The picture of ``sapwood trace explain``: where the time went, and a stretch of it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sapwood.trace.events import STAGE, Event
from sapwood.trace.explain import Explanation, steps_of

_STEPS = 6  # shown one after the other
_COLOURS = {
    "Draft_Generate": "#2f6fb0",
    "Prune_Controller": "#7fb2e5",
    "Sync_Draft2Target": "#b03a5b",
    "Target_Verify": "#2c8a4b",
    "Accept_Reject_Sample": "#c2681a",
    "Learn": "#8a4fb0",
}
_OTHER = "0.75"
_TRACKS = ("target", "draft")  # from below


def draw(told: Explanation, events: Sequence[Event], path: Path) -> None:
    """Above: shares of decoding by stage. Below: steps from the middle of the trace, draft and
    target on tracks of their own, over each pass its rows and the guesses it accepted."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, (shares, tracks) = pyplot.subplots(
        2, 1, figsize=(10, 5), layout="constrained", height_ratios=(1.1, 1)
    )
    names = list(told.shares)
    bars = shares.barh(
        names, [100 * told.shares[n] for n in names], color=[_COLOURS.get(n, _OTHER) for n in names]
    )
    shares.bar_label(bars, fmt="%.1f %%", padding=3, fontsize=9)
    shares.invert_yaxis()
    shares.set_xlim(0, 108)
    shares.set_xlabel("share of decoding, %")
    shares.set_title(
        f"{told.steps} steps, {told.milliseconds_a_step:.2f} ms and "
        f"{told.tokens_a_step:.2f} tokens each",
        fontsize=11,
    )
    _draw_stretch(tracks, events)
    for axes in (shares, tracks):
        axes.spines[["top", "right"]].set_visible(False)
    figure.savefig(path, dpi=110)
    pyplot.close(figure)


def stretch_of(events: Sequence[Event]) -> list[Event]:
    """The stages of steps in a row, from the middle of the trace, by the time they began."""
    steps = steps_of(events)
    first = max(0, len(steps) // 2 - _STEPS // 2)
    begin, end = steps[first].begin, steps[min(first + _STEPS, len(steps)) - 1].end
    stages = [event for event in events if event.kind == STAGE and event.track in _TRACKS]
    return sorted(
        (stage for stage in stages if begin <= stage.begin and stage.end <= end),
        key=lambda stage: stage.begin,
    )


def _draw_stretch(axes: Any, events: Sequence[Event]) -> None:
    stretch = stretch_of(events)
    begin = stretch[0].begin
    drafted: dict[int, tuple[float, float]] = {}

    def milliseconds(moment: int) -> float:
        return (moment - begin) / 1e6

    for stage in stretch:
        place = _TRACKS.index(stage.track)
        left, width = milliseconds(stage.begin), stage.duration / 1e6
        height = 0.3 if stage.name == "Prune_Controller" else 0.6  # lies inside drafting
        colour = _COLOURS.get(stage.name, _OTHER)
        axes.barh(place, width, left=left, height=height, color=colour, linewidth=0)
        if stage.name == "Draft_Generate":
            drafted[stage.step] = (left + width, place - 0.3)
        if stage.name == "Target_Verify":
            _draw_pass(axes, stage, left, width, drafted.get(stage.step))
        if stage.name == "Accept_Reject_Sample" and stage.rows > 1:
            axes.text(left, -0.35, f"+{stage.accepted}", ha="center", va="top", fontsize=8)
    axes.set_yticks(range(len(_TRACKS)), _TRACKS)
    axes.set_ylim(-0.75, len(_TRACKS) - 0.5)
    axes.set_xlim(left=0)
    axes.set_xlabel(
        "milliseconds; in each pass its rows, below its end the guesses that it accepted"
    )


def _draw_pass(
    axes: Any, stage: Event, left: float, width: float, draft: tuple[float, float] | None
) -> None:
    text = f"{stage.rows} row{'s' if stage.rows > 1 else ''}"
    axes.text(left + width / 2, 0, text, ha="center", va="center", color="white", fontsize=8)
    if draft is not None and stage.rows > 1:
        arrow = {"arrowstyle": "->", "color": "0.35", "shrinkA": 0, "shrinkB": 0}
        axes.annotate("", (left, 0.3), xytext=draft, arrowprops=arrow)
