"""Line drawings for a page, as SVG that takes its colours from the page's style sheet."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from html import escape

WIDTH = 340  # units; a phone shows one about as large as a pixel of its style sheet


class Drawing:
    """An SVG element, ``WIDTH`` wide. Coordinates are in units, y grows downwards.

    ``style``: classes of the style sheet, which set the colour.
    """

    def __init__(self, height: float, description: str) -> None:
        self._parts = [
            f'<svg viewBox="0 0 {WIDTH} {height:g}" role="img" aria-label="{escape(description)}">'
        ]

    def line(self, x1: float, y1: float, x2: float, y2: float, style: str) -> None:
        self._parts.append(
            f'<line x1="{x1:.1f}" y1="{y1:.1f}" x2="{x2:.1f}" y2="{y2:.1f}" class="{style}"/>'
        )

    def path(self, points: Sequence[tuple[float, float]], style: str) -> None:
        places = " ".join(f"{x:.1f},{y:.1f}" for x, y in points)
        self._parts.append(f'<polyline points="{places}" class="{style}"/>')

    def dot(self, x: float, y: float, style: str, tip: str) -> None:
        self._parts.append(
            f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3.2" class="{style}">'
            f"<title>{escape(tip)}</title></circle>"
        )

    def bar(self, x: float, y: float, width: float, height: float, style: str, tip: str) -> None:
        self._parts.append(
            f'<rect x="{x:.1f}" y="{y:.1f}" width="{width:.1f}" height="{max(0, height):.1f}" '
            f'rx="1.5" class="{style}"><title>{escape(tip)}</title></rect>'
        )

    def text(self, x: float, y: float, words: str, anchor: str = "middle", style: str = "") -> None:
        self._parts.append(
            f'<text x="{x:.1f}" y="{y:.1f}" text-anchor="{anchor}" class="{style}">'
            f"{escape(words)}</text>"
        )

    def svg(self) -> str:
        return "".join([*self._parts, "</svg>"])


def scale(low: float, high: float, begin: float, end: float) -> Callable[[float], float]:
    """From values to places: ``low`` lies at ``begin``, ``high`` at ``end``."""
    return lambda value: begin + (value - low) / (high - low) * (end - begin)


def ticks(low: float, high: float, most: int = 6) -> list[float]:
    """Round values that cover ``low`` to ``high``."""
    span = (high - low) or abs(high) or 1.0
    unit = 10.0 ** math.floor(math.log10(span / most))
    step = unit * next(
        factor
        for factor in (1, 2, 2.5, 5, 10, 20)
        if math.ceil(high / (unit * factor)) - math.floor(low / (unit * factor)) < most
    )
    first, last = math.floor(low / step + 1e-9), math.ceil(high / step - 1e-9)
    return [round(step * number, 10) for number in range(first, max(last, first + 1) + 1)]
