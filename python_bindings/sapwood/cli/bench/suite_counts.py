"""What ``sapwood bench suite`` counts: sums over answers, by mode and category."""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from statistics import quantiles
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sapwood._runtime import SessionStats

_SUMMED = (
    "emitted_tokens",
    "steps",
    "rows_verified",
    "drafted_tokens",
    "accepted_tokens",
    "soft_fallbacks",
    "hard_fallbacks",
    "decode_seconds",
    "draft_seconds",
)
_LARGEST = ("peak_kv_slots", "peak_draft_slots")


@dataclass(frozen=True)
class Answer:
    """One mode's answer to one question: the emitted ids, how many each step emitted, and the
    session's counts by name."""

    ids: tuple[int, ...]
    steps: tuple[int, ...]
    counts: Mapping[str, float]

    @classmethod
    def of(cls, steps: Sequence[Sequence[int]], stats: SessionStats) -> Answer:
        """Of the ids that each step emitted."""
        return cls(
            tuple(token for step in steps for token in step),
            tuple(map(len, steps)),
            {name: getattr(stats, name) for name in (*_SUMMED, *_LARGEST)},
        )

    @classmethod
    def of_plain(cls, ids: Sequence[int], seconds: float) -> Answer:
        """Of a peer that emits a token a pass."""
        counts = dict.fromkeys((*_SUMMED, *_LARGEST), 0.0)
        counts |= dict.fromkeys(("emitted_tokens", "steps", "rows_verified"), float(len(ids)))
        return cls(tuple(ids), (1,) * len(ids), counts | {"decode_seconds": seconds})

    @property
    def tokens_per_second(self) -> float:
        return _tokens_per_second(self.counts)


@dataclass(frozen=True)
class Outcome:
    """One question, answered by every mode."""

    question_id: str
    category: str
    answers: Mapping[str, Answer]

    def speedup(self, mode: str, reference: str) -> float | None:
        """Over the same question's answer by the reference; None where that took no time."""
        base = self.answers[reference].tokens_per_second
        return self.answers[mode].tokens_per_second / base if base else None

    def differs(self, mode: str, reference: str) -> bool:
        return self.answers[mode].ids != self.answers[reference].ids


def by_side(
    outcomes: Sequence[Outcome], sides: Sequence[str], reference: str
) -> dict[str, dict[str, Any]]:
    """The figures of modes, or of peers, whole and by category. Speed is over the reference's,
    where that is plain decoding."""
    categories = list(dict.fromkeys(outcome.category for outcome in outcomes))
    report: dict[str, dict[str, Any]] = {}
    for side in sides:
        report[side] = _of(outcomes, side, reference)
        report[side]["by_category"] = {
            category: _of([o for o in outcomes if o.category == category], side, reference)
            for category in categories
        }
    return report


def summarise(outcomes: Sequence[Outcome], modes: Sequence[str]) -> dict[str, Any]:
    """The figures of the object that ``--json`` prints.

    Speed and ids are compared with plain decoding; ids with the first mode where plain is not among
    them.
    """
    reference = "plain" if "plain" in modes else modes[0]
    report = by_side(outcomes, modes, reference)
    differing = [o.question_id for o in outcomes if any(o.differs(m, reference) for m in modes)]
    return {
        "modes": report,
        "equal_tokens": not differing,
        "ids_compared_with": reference,
        "differing_question_ids": differing,
    }


def _of(outcomes: Sequence[Outcome], mode: str, reference: str) -> dict[str, Any]:
    answers = [outcome.answers[mode] for outcome in outcomes]
    total = _totals(answers)
    speed = _tokens_per_second(total)
    base = 0.0
    speedups: list[float | None] = []
    if reference == "plain":
        base = _tokens_per_second(_totals([outcome.answers[reference] for outcome in outcomes]))
        speedups = [outcome.speedup(mode, reference) for outcome in outcomes]
    steps_by_tokens = _steps_by_tokens(answers)
    return {
        "answers": len(outcomes),
        "tokens": total["emitted_tokens"],
        "steps": total["steps"],
        "tokens_per_second": speed,
        "speedup": speed / base if base else None,
        "answer_tokens_per_second": _spread([answer.tokens_per_second for answer in answers]),
        "answer_speedup": _spread([each for each in speedups if each is not None]),
        "steps_by_tokens": steps_by_tokens,
        "acceptance_by_depth": _acceptance_by_depth(steps_by_tokens),
        "mean_accepted_length": total["emitted_tokens"] / max(1, total["steps"]),
        "mean_rows": total["rows_verified"] / max(1, total["steps"]),
        "acceptance": total["accepted_tokens"] / max(1, total["drafted_tokens"]),
        "soft_fallbacks": total["soft_fallbacks"],
        "hard_fallbacks": total["hard_fallbacks"],
        "peak_kv_slots": total["peak_kv_slots"],
        "peak_draft_slots": total["peak_draft_slots"],
        "mean_draft_slots": total["drafted_tokens"] / max(1, total["steps"]),
        "draft_share": total["draft_seconds"] / (total["decode_seconds"] or 1.0),
        "differing_prompts": sum(outcome.differs(mode, reference) for outcome in outcomes),
    }


def _spread(values: Sequence[float]) -> dict[str, float] | None:
    """Median and quartiles over single answers; None of none."""
    if not values:
        return None
    if len(values) == 1:
        values = [*values, *values]
    low, middle, high = quantiles(values, n=4, method="inclusive")
    return {"lower_quartile": low, "median": middle, "upper_quartile": high}


def _steps_by_tokens(answers: Sequence[Answer]) -> list[int]:
    """How many steps emitted 1 token, 2 tokens, ...: the accepted guesses and the target's own."""
    counts = Counter(emitted for answer in answers for emitted in answer.steps)
    return [counts[emitted] for emitted in range(1, max(counts, default=0) + 1)]


def _acceptance_by_depth(steps_by_tokens: Sequence[int]) -> list[float]:
    """Of the steps whose guesses before this depth were all accepted, the share whose guess at it
    was too. One that was not drafted counts as not accepted."""
    reached = list(itertools.accumulate(reversed(steps_by_tokens)))[::-1]
    return [further / here for here, further in itertools.pairwise(reached) if here]


def _totals(answers: Sequence[Answer]) -> dict[str, float]:
    total: dict[str, float] = {
        name: sum(answer.counts[name] for answer in answers) for name in _SUMMED
    }
    return total | {name: max(answer.counts[name] for answer in answers) for name in _LARGEST}


def _tokens_per_second(total: Mapping[str, float]) -> float:
    return total["emitted_tokens"] / (total["decode_seconds"] or float("inf"))
