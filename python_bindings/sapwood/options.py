"""The options of one answer, as a type, and the checks that need no model."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import TypedDict

from sapwood.errors import SapwoodError

MODES = ("plain", "chain", "fixed", "dynamic")
HOSTS = ("native", "onnxruntime")
DRAFTERS = ("mix", "ngram", "successor", "none")


class GenerateOptions(TypedDict, total=False):
    """Keyword arguments of ``Engine.generate``, where they are explained."""

    max_new_tokens: int
    temperature: float
    top_k: int
    top_p: float
    min_p: float
    repetition_penalty: float
    seed: int
    stop: str | Sequence[str] | None
    mode: str | None


def default_threads() -> int:
    """The cores this process may run on."""
    return max(1, len(os.sched_getaffinity(0)))


def checked_positive(name: str, value: int) -> int:
    if value < 1:
        raise SapwoodError(f"{name}: must be at least 1, not {value}")
    return value


def checked_mode(mode: str) -> str:
    if mode not in MODES:
        raise SapwoodError(f"mode: must be one of {', '.join(MODES)}, not {mode!r}")
    return mode


def checked_drafter(drafter: str) -> str:
    if drafter not in DRAFTERS:
        raise SapwoodError(f"drafter: must be one of {', '.join(DRAFTERS)}, not {drafter!r}")
    return drafter


def checked_stops(stop: str | Sequence[str] | None) -> list[str]:
    stops = [stop] if isinstance(stop, str) else list(stop or ())
    if "" in stops:
        raise SapwoodError("stop: an empty text would end every answer; give it some characters")
    return stops
