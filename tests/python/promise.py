"""The promise of the project, as a check: every mode gives the tokens of plain decoding."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from itertools import product

from sapwood.engine import Engine
from sapwood.options import MODES

# How many prompts and tokens a run on every change can afford, and those of a slow one.
QUICK_PROMPTS, QUICK_TOKENS = 3, 48
ALL_PROMPTS, ALL_TOKENS = 24, 128


def check_promise(
    engines: Mapping[str, Engine], prompts: Sequence[str], max_new_tokens: int, **sampling: float
) -> None:
    """Every engine in every mode gives the tokens of the first engine's first mode, plain."""
    different = []
    for number, prompt in enumerate(prompts):
        expected: tuple[list[int], str] | None = None
        for name, mode in product(engines, MODES):
            generation = engines[name].generate(
                prompt, mode=mode, max_new_tokens=max_new_tokens, **sampling
            )
            for _ in generation:
                pass
            answer = generation.token_ids, generation.stop_reason
            expected = expected or answer
            if answer != expected:
                different.append(f"prompt {number}, {name} {mode}")
    assert not different, (
        f"{len(different)} answers differ from {next(iter(engines))} plain: {different}"
    )
