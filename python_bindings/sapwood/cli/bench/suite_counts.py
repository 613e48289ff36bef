"""What ``sapwood bench suite`` counts: sums over answers, by mode and category."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
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
    """One mode's answer to one question: the emitted ids, and the session's counts by name."""

    ids: tuple[int, ...]
    counts: Mapping[str, float]

    @classmethod
    def of(cls, ids: Sequence[int], stats: SessionStats) -> Answer:
        return cls(tuple(ids), {name: getattr(stats, name) for name in (*_SUMMED, *_LARGEST)})


@dataclass(frozen=True)
class Outcome:
    """One question, answered by every mode."""

    question_id: str
    category: str
    answers: Mapping[str, Answer]

    def differs(self, mode: str, reference: str) -> bool:
        return self.answers[mode].ids != self.answers[reference].ids


def summarise(outcomes: Sequence[Outcome], modes: Sequence[str]) -> dict[str, Any]:
    """The figures of the object that ``--json`` prints.

    Speed and ids are compared with plain decoding; ids with the first mode where plain is not among
    them.
    """
    reference = "plain" if "plain" in modes else modes[0]
    categories = list(dict.fromkeys(outcome.category for outcome in outcomes))
    report: dict[str, Any] = {}
    for mode in modes:
        report[mode] = _of(outcomes, mode, reference)
        report[mode]["by_category"] = {
            category: _of([o for o in outcomes if o.category == category], mode, reference)
            for category in categories
        }
    differing = [o.question_id for o in outcomes if any(o.differs(m, reference) for m in modes)]
    return {
        "modes": report,
        "equal_tokens": not differing,
        "ids_compared_with": reference,
        "differing_question_ids": differing,
    }


def _of(outcomes: Sequence[Outcome], mode: str, reference: str) -> dict[str, Any]:
    total = _totals([outcome.answers[mode] for outcome in outcomes])
    speed = _tokens_per_second(total)
    base = 0.0
    if reference == "plain":
        base = _tokens_per_second(_totals([outcome.answers[reference] for outcome in outcomes]))
    return {
        "answers": len(outcomes),
        "tokens": total["emitted_tokens"],
        "steps": total["steps"],
        "tokens_per_second": speed,
        "speedup": speed / base if base else None,
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


def _totals(answers: Sequence[Answer]) -> dict[str, float]:
    total: dict[str, float] = {
        name: sum(answer.counts[name] for answer in answers) for name in _SUMMED
    }
    return total | {name: max(answer.counts[name] for answer in answers) for name in _LARGEST}


def _tokens_per_second(total: Mapping[str, float]) -> float:
    return total["emitted_tokens"] / (total["decode_seconds"] or float("inf"))
