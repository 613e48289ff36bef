"""The plots of a ``bench suite`` page, each from the object that ``--json`` prints."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from typing import Any

from sapwood.cli.bench.report_drawing import WIDTH, Drawing, scale, ticks

_LANE = 9  # units of height for one mode of a category
_LABELS = 98  # units of width for the categories' names
_LONGEST_LABEL = 16  # characters
_MOST_TOKENS = 8  # a step that emitted more is counted with these
_MOST_DEPTHS = 8
_NOTE = 68  # units of width for what stands beside a line
_HEIGHT = 190  # of a plot with axes
_COLOURS = 8  # of the style sheet, beside plain decoding's
_LEFT, _RIGHT, _TOP, _BOTTOM = 38, WIDTH - 10, 12, _HEIGHT - 34


def sides_of(report: Mapping[str, Any]) -> dict[str, Any]:
    """The modes, and the peers that were measured beside them."""
    return {**report["modes"], **report["peers"]}


def colours(report: Mapping[str, Any]) -> dict[str, str]:
    """A class of the style sheet for every side; plain decoding's is the same on every page."""
    others = [side for side in sides_of(report) if side != "plain"]
    return {"plain": "c0"} | {side: f"c{1 + index % _COLOURS}" for index, side in enumerate(others)}


def by_category(report: Mapping[str, Any]) -> str:
    """Median and quartiles of the answers' speed, a lane a mode, categories below one another."""
    modes = sides_of(report)
    figure = figure_of(report)
    style = colours(report)
    shown = {
        name: part
        for name, part in modes.items()
        if not (figure == "answer_speedup" and name == "plain")
    } or modes
    categories = list(next(iter(modes.values()))["by_category"])
    rows = [
        (name, {m: part["by_category"][name] for m, part in shown.items()}) for name in categories
    ]
    rows.insert(0, ("all", dict(shown)))
    spreads = [part[figure] for _, parts in rows for part in parts.values() if part[figure]]
    if not spreads:
        return ""
    low = min(spread["lower_quartile"] for spread in spreads)
    high = max(spread["upper_quartile"] for spread in spreads)
    if figure == "answer_speedup":
        low, high = min(low, 1.0), max(high, 1.0)
    marks = ticks(low, high)
    height = len(shown) * _LANE + 8
    bottom = 6 + len(rows) * height
    drawing = Drawing(bottom + 34, "Speed by category and mode: medians and quartiles")
    place = scale(marks[0], marks[-1], _LABELS + 6, WIDTH - 14)
    _vertical_grid(drawing, marks, place, bottom)
    if figure == "answer_speedup":
        drawing.line(place(1), 4, place(1), bottom, "one")
        drawing.text((_LABELS + WIDTH) / 2, bottom + 29, "speed-up over plain decoding")
    else:
        drawing.text((_LABELS + WIDTH) / 2, bottom + 29, "tokens a second")
    for index, (name, parts) in enumerate(rows):
        top = 6 + index * height
        label = name if len(name) <= _LONGEST_LABEL else name[: _LONGEST_LABEL - 1] + "…"
        drawing.text(_LABELS, top + height / 2 + 3, label, "end", "strong" if index == 0 else "")
        drawing.line(0, top + height, WIDTH, top + height, "rule")
        for lane, (mode, part) in enumerate(parts.items()):
            spread = part[figure]
            if spread is None:
                continue
            y = top + 4 + (lane + 0.5) * _LANE
            ends = place(spread["lower_quartile"]), place(spread["upper_quartile"])
            drawing.line(ends[0], y, ends[1], y, f"range {style[mode]}")
            tip = (
                f"{name}, {mode}: {spread['median']:.2f} "
                f"({spread['lower_quartile']:.2f} to {spread['upper_quartile']:.2f})"
            )
            drawing.dot(place(spread["median"]), y, f"dot {style[mode]}", tip)
    return drawing.svg()


def figure_of(report: Mapping[str, Any]) -> str:
    """What speeds are shown as: over plain decoding, or on their own where that was not run."""
    modes = report["modes"].values()
    over_plain = any(mode["answer_speedup"] for mode in modes)
    return "answer_speedup" if over_plain else "answer_tokens_per_second"


def tokens_a_step(report: Mapping[str, Any]) -> str:
    """Shares of the steps that emitted 1, 2, ... tokens, for every mode that drafts."""
    modes = {name: mode for name, mode in report["modes"].items() if name != "plain"}
    shares = {name: _shares(mode["steps_by_tokens"]) for name, mode in modes.items()}
    shares = {name: each for name, each in shares.items() if each}
    if not shares:
        return ""
    style = colours(report)
    most = max(map(len, shares.values()))
    marks = ticks(0, max(max(each) for each in shares.values()))
    drawing = Drawing(_HEIGHT, "Distribution of the tokens that a step emits, by mode")
    place = scale(0, marks[-1], _BOTTOM, _TOP)
    _horizontal_grid(drawing, marks, place, "{:.0%}")
    column = (_RIGHT - _LEFT) / most
    width = column * 0.8 / len(shares)
    for tokens in range(1, most + 1):
        left = _LEFT + (tokens - 1) * column
        label = f"{tokens}+" if tokens == _MOST_TOKENS else str(tokens)
        drawing.text(left + column / 2, _BOTTOM + 14, label)
        for lane, (mode, each) in enumerate(shares.items()):
            share = each[tokens - 1] if tokens <= len(each) else 0.0
            x = left + column * 0.1 + lane * width
            tip = f"{mode}: {share:.1%} of the steps emitted {label}"
            drawing.bar(
                x, place(share), width - 0.5, _BOTTOM - place(share), f"bar {style[mode]}", tip
            )
    drawing.text((_LEFT + _RIGHT) / 2, _HEIGHT - 4, "tokens that a step emitted")
    return drawing.svg()


def _shares(steps_by_tokens: Sequence[int]) -> list[float]:
    total = sum(steps_by_tokens)
    if not total:
        return []
    counts = list(steps_by_tokens[: _MOST_TOKENS - 1])
    if len(steps_by_tokens) >= _MOST_TOKENS:
        counts.append(sum(steps_by_tokens[_MOST_TOKENS - 1 :]))
    return [count / total for count in counts]


def acceptance_by_depth(report: Mapping[str, Any]) -> str:
    """Lines of every mode that drafts; dashed, the trained draft's on the text held out."""
    modes = report["modes"]
    style = colours(report)
    lines = {
        name: (mode["acceptance_by_depth"][:_MOST_DEPTHS], f"curve {style[name]}")
        for name, mode in modes.items()
        if name != "plain" and mode["acceptance_by_depth"]
    }
    trained = report["trained_draft_acceptance"]
    if trained:
        lines["trained draft, held-out text"] = (trained[:_MOST_DEPTHS], "curve dashed")
    if not lines:
        return ""
    deepest = max(2, *(len(each) for each, _ in lines.values()))
    marks = ticks(0, max(max(each) for each, _ in lines.values()))
    drawing = Drawing(_HEIGHT, "Acceptance of a guess by its depth, by mode")
    across = scale(1, deepest, _LEFT + 14, _RIGHT - 14)
    place = scale(0, marks[-1], _BOTTOM, _TOP)
    _horizontal_grid(drawing, marks, place, "{:.0%}")
    for depth in range(1, deepest + 1):
        drawing.text(across(depth), _BOTTOM + 14, str(depth))
    for name, (each, line) in lines.items():
        points = [(across(depth), place(share)) for depth, share in enumerate(each, 1)]
        drawing.path(points, line)
        for (x, y), share in zip(points, each, strict=True):
            drawing.dot(x, y, line.replace("curve", "dot"), f"{name}: {share:.1%}")
    drawing.text((_LEFT + _RIGHT) / 2, _HEIGHT - 4, "depth of the guess")
    return drawing.svg()


def cost_curve(report: Mapping[str, Any]) -> str:
    """Milliseconds of a pass by its rows, a line a context, as ``sapwood tune`` measured them."""
    costs = report["costs"]
    if costs is None:
        return ""
    rows, lines = costs["rows"], costs["milliseconds"]
    marks = ticks(0, max(max(line) for line in lines))
    drawing = Drawing(_HEIGHT, "Cost of a pass by its rows")
    across = scale(0, max(1.0, math.log2(rows[-1])), _LEFT + 10, _RIGHT - _NOTE)
    place = scale(0, marks[-1], _BOTTOM, _TOP)
    _horizontal_grid(drawing, marks, place, "{:g}")
    for row in rows:
        if math.log2(row).is_integer():
            drawing.text(across(math.log2(row)), _BOTTOM + 14, str(row))
    for index, (context, line) in enumerate(zip(costs["contexts"], lines, strict=True)):
        style = f"c{1 + index % 6}"
        points = [(across(math.log2(row)), place(ms)) for row, ms in zip(rows, line, strict=True)]
        drawing.path(points, f"curve {style}")
        for (x, y), row, ms in zip(points, rows, line, strict=True):
            tip = f"{row} rows over {context:,} tokens: {ms:.2f} ms, {ms / line[0]:.2f} of one row"
            drawing.dot(x, y, f"dot {style}", tip)
        x, y = points[-1]
        drawing.text(x + 6, y + 3, f"{context:,} tokens", "start")
    drawing.text(
        (_LEFT + _RIGHT - _NOTE) / 2, _HEIGHT - 4, "rows verified in one pass; milliseconds"
    )
    return drawing.svg()


def _horizontal_grid(drawing: Drawing, marks: Sequence[float], place: Any, pattern: str) -> None:
    for mark in marks:
        drawing.line(_LEFT, place(mark), _RIGHT, place(mark), "rule")
        drawing.text(_LEFT - 5, place(mark) + 3.5, pattern.format(mark), "end")


def _vertical_grid(drawing: Drawing, marks: Sequence[float], place: Any, bottom: float) -> None:
    for mark in marks:
        drawing.line(place(mark), 4, place(mark), bottom, "rule")
        drawing.text(place(mark), bottom + 14, f"{mark:g}")
