"""Which kinds of seeds there are, and how much of each goes into the data."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import replace

from sapwood_export.distill.seeds import Seed, draw_seed
from sapwood_export.distill.seeds_code import CODE, CODE_WORDS
from sapwood_export.distill.seeds_language import (
    LANGUAGE_WORDS,
    RETRIEVAL,
    SUMMARISING,
    TRANSLATION,
)
from sapwood_export.distill.seeds_mathematics import MATHEMATICS, MATHEMATICS_WORDS
from sapwood_export.distill.seeds_text import DIALOGUE, QUESTIONS, WRITING
from sapwood_export.distill.seeds_tools import draw_tool_seed
from sapwood_export.distill.seeds_words import WORDS

# The person's turns are the target's, too: sampled from its chat template with nothing in it.
FREE = "free"

# Conversations of each category in a shard.
MIX: dict[str, int] = {
    FREE: 30,
    "writing": 18,
    "questions": 22,
    "dialogue": 16,
    "code": 20,
    "mathematics": 22,
    "translation": 16,
    "summarising": 14,
    "retrieval": 14,
    "tools": 12,
}
CATEGORIES = tuple(MIX)

_DRAW: dict[str, Callable[[random.Random], Seed]] = {
    "writing": lambda generator: draw_seed("writing", WRITING, WORDS, generator),
    "questions": lambda generator: draw_seed("questions", QUESTIONS, WORDS, generator),
    "dialogue": lambda generator: draw_seed("dialogue", DIALOGUE, WORDS, generator),
    "code": lambda generator: draw_seed("code", CODE, CODE_WORDS, generator),
    "mathematics": lambda generator: draw_seed(
        "mathematics", MATHEMATICS, MATHEMATICS_WORDS, generator
    ),
    "translation": lambda generator: draw_seed(
        "translation", TRANSLATION, LANGUAGE_WORDS, generator
    ),
    "summarising": lambda generator: draw_seed(
        "summarising", SUMMARISING, LANGUAGE_WORDS, generator
    ),
    "retrieval": lambda generator: draw_seed("retrieval", RETRIEVAL, LANGUAGE_WORDS, generator),
    "tools": lambda generator: draw_tool_seed("tools", generator),
    FREE: lambda generator: Seed(FREE, ""),
}


_TRIES = 32  # draws before a category counts as used up


class SeedStream:
    """The conversations of one shard after the other, no opening twice.

    What a shard holds depends on the seed and its number alone.
    """

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self._seen: set[Seed] = set()
        self.shard = 0  # the next one

    def next_shard(self) -> list[Seed]:
        """The conversations of the next shard, in order."""
        generator = random.Random(f"{self._seed} {self.shard}")
        self.shard += 1
        categories = [category for category, count in MIX.items() for _ in range(count)]
        generator.shuffle(categories)
        return [self._unseen(category, generator) for category in categories]

    def _unseen(self, category: str, generator: random.Random) -> Seed:
        for _ in range(_TRIES):
            seed = _DRAW[category](generator)
            opening = replace(seed, follow_ups=())
            if category == FREE or opening not in self._seen:
                self._seen.add(opening)
                return seed
        return _DRAW[FREE](generator)
