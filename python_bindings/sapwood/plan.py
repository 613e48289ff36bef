"""What speculation is worth before it is run: tokens a step, speed-up, the best length of a chain.

The step of a chain of ``g`` guesses takes ``d(g) + c(g + 1) + o``, in shares of a pass of the
target over one row: the draft's passes, the target's pass over the guesses and the token before
them, and whatever else a step does. It emits ``1 + sum over i of a_1 ... a_i`` tokens, ``a_i`` the
probability that the guess at depth ``i`` is accepted where all before it were (Leviathan et al.,
2023, equation 1, for one ``a``). Plain decoding emits one token in one pass, so the ratio of the
two is the speed-up. The best length is found by evaluating every one.
"""

from __future__ import annotations

import itertools
import math
import operator
from collections.abc import Sequence
from dataclasses import dataclass

LONGEST = 16  # guesses, where nothing else limits a chain


@dataclass(frozen=True)
class CostCurve:
    """Cost of a pass of the target over so many rows, one row's being 1.

    ``points``: (rows, cost), rows ascending from 1; costs in any unit. In between it is linear.
    Raises ValueError for points that are no curve.
    """

    points: tuple[tuple[int, float], ...] = ((1, 1.0),)

    def __post_init__(self) -> None:
        rows = [row for row, _ in self.points]
        if not rows or rows[0] != 1 or any(a >= b for a, b in itertools.pairwise(rows)):
            raise ValueError("rows must ascend from 1")
        if not all(math.isfinite(cost) and cost > 0 for _, cost in self.points):
            raise ValueError("costs must be above 0")

    @property
    def flat(self) -> bool:
        """Nothing but one row is known: any number of rows is taken to cost the same."""
        return len(self.points) == 1

    @property
    def most_rows(self) -> int | None:
        """The curve ends here; None for a flat one, which does not."""
        return None if self.flat else self.points[-1][0]

    def at(self, rows: int) -> float:
        """Raises ValueError beyond the curve's end."""
        if self.flat:
            return 1.0
        one = self.points[0][1]
        for (left, low), (right, high) in itertools.pairwise(self.points):
            if left <= rows <= right:
                return (low + (high - low) * (rows - left) / (right - left)) / one
        raise ValueError(f"no cost is known of {rows} rows")


@dataclass(frozen=True)
class Costs:
    """What a step is made of, in passes of the target over one row.

    ``draft``: a pass of the draft. ``first_draft``: the first pass of a step, which reads the text
    that is new, where it costs something else. ``one_pass``: the draft guesses all depths in its
    first pass. ``overhead``: the rest of a step.
    """

    draft: float
    first_draft: float | None = None
    one_pass: bool = False
    overhead: float = 0.0
    verify: CostCurve = CostCurve()

    def drafting(self, length: int) -> float:
        """All passes of the draft for ``length`` guesses."""
        if length == 0:
            return 0.0
        first = self.draft if self.first_draft is None else self.first_draft
        return first if self.one_pass else first + (length - 1) * self.draft

    def step(self, length: int) -> float:
        """A step with ``length`` guesses; without any it is plain decoding's pass over one row."""
        if length == 0:
            return 1.0
        return self.drafting(length) + self.verify.at(length + 1) + self.overhead


@dataclass(frozen=True)
class Step:
    """A step that guesses ``length`` tokens. ``speedup`` is over plain decoding."""

    length: int
    accepted: float
    tokens: float
    cost: float
    speedup: float


def constant(acceptance: float, depths: int, decay: float = 1.0) -> list[float]:
    """``acceptance * decay^(i - 1)`` at depth i: position-dependent acceptance of MATH.md, 6."""
    return [acceptance * decay**depth for depth in range(depths)]


def by_depth(known: Sequence[float], depths: int) -> list[float]:
    """Acceptance at depths 1, 2, ...; beyond the last that is known it stays what it was there."""
    return [known[min(depth, len(known) - 1)] for depth in range(depths)]


def accepted_tokens(acceptance: Sequence[float]) -> float:
    """Guesses that a chain of this acceptance by depth has accepted, in expectation."""
    return math.fsum(itertools.accumulate(acceptance, operator.mul))


def steps(acceptance: Sequence[float], costs: Costs) -> list[Step]:
    """Chains of every length from 0, which is plain decoding, to ``len(acceptance)``."""
    found = []
    for length in range(len(acceptance) + 1):
        accepted = accepted_tokens(acceptance[:length])
        cost = costs.step(length)
        found.append(Step(length, accepted, 1 + accepted, cost, (1 + accepted) / cost))
    return found


def best(acceptance: Sequence[float], costs: Costs) -> Step:
    """The fastest, of equals the shortest. Its length 0 says: do not speculate."""
    return max(steps(acceptance, costs), key=lambda step: step.speedup)


def break_even(costs: Costs, longest: int) -> float | None:
    """The constant acceptance above which some chain is faster than plain decoding, to 1e-9.

    None where even a draft that is always right would not pay.
    """

    def pays(acceptance: float) -> bool:
        return best(constant(acceptance, longest), costs).length > 0

    if not pays(1.0):
        return None
    low, high = 0.0, 1.0  # speed-up grows with acceptance, so one place parts the two
    if pays(low):
        return 0.0
    while high - low > 1e-9:
        middle = (low + high) / 2
        low, high = (low, middle) if pays(middle) else (middle, high)
    return high
