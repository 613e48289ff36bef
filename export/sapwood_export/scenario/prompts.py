"""Prompts with the scenario they belong to, composed of templates that are written here.

Whole templates are held out, not fillings of the same ones: what is measured on them is how well
the classifier does with ways of asking that it has not seen.
"""

from __future__ import annotations

import random
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass

from sapwood import _runtime
from sapwood_export.distill.seeds import PASSAGE, Template, draw_seed
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
from sapwood_export.scenario import templates

NAMES = tuple(_runtime.scenario_names())
_HELD_OUT = 5  # of so many templates one
_TOOLS = 60  # tool calls count as so many templates: their schemas differ

_WORDS = {**MATHEMATICS_WORDS, **CODE_WORDS, **LANGUAGE_WORDS}
# Of the openings of questions and dialogues, those that are to be reasoned about, and those that
# ask for a role or a joke.
_REASONS = ("step by step", "how do you know", "your reasoning", "weekday will", "order of size")
_PLAYS = ("You are ", "Pretend", "Let us play", "Imagine", "as if you were", "joke")


@dataclass(frozen=True)
class Prompt:
    """What a person asks, after what the system says if anything; ``scenario`` is one of NAMES."""

    text: str
    scenario: str
    held_out: bool


def _is_any(opening: str, marks: Iterable[str]) -> bool:
    return any(mark in opening for mark in marks)


def _labelled() -> Iterator[tuple[str, Template]]:
    for opening in templates.STRUCTURE:
        yield "structure", Template(opening)
    for opening in templates.REASONING:
        yield "reasoning", Template(opening)
    for opening in templates.CREATIVITY:
        yield "creativity", Template(opening)
    for opening in templates.KNOWLEDGE:
        yield "knowledge", Template(opening)
    for template in CODE:
        yield "structure", template
    for template in MATHEMATICS:
        yield "reasoning", template
    for template in WRITING:
        yield "creativity", template
    for template in (*SUMMARISING, *RETRIEVAL, *TRANSLATION):
        yield "knowledge", template
    for template in QUESTIONS:
        yield "reasoning" if _is_any(template.opening, _REASONS) else "knowledge", template
    for template in DIALOGUE:
        yield "creativity" if _is_any(template.opening, _PLAYS) else "knowledge", template


def _text(system: str | None, opening: str) -> str:
    return opening if system is None else f"{system}\n{opening}"


def _is_held_out(text: str) -> bool:
    return zlib.crc32(text.encode()) % _HELD_OUT == 0


def make_prompts(fillings: int, seed: int = 0) -> list[Prompt]:
    """So many fillings of every template, none of them twice. The same ones for the same seed."""
    generator = random.Random(seed)
    prompts = []
    for scenario, template in _labelled():
        texts = set()
        for _ in range(fillings):
            drawn = draw_seed(scenario, (template,), _WORDS, generator)
            text = _text(drawn.system, drawn.opening)
            if PASSAGE in text:
                text = text.replace(PASSAGE, _passage(generator))
            texts.add(text)
        held_out = _is_held_out(_text(template.system, template.opening))
        prompts += [Prompt(text, scenario, held_out) for text in sorted(texts)]
    for _ in range(_TOOLS * fillings // 4):
        drawn = draw_tool_seed("tools", generator)
        text = _text(drawn.system, drawn.opening)
        prompts.append(Prompt(text, "structure", _is_held_out(drawn.opening)))
    return prompts


def _passage(generator: random.Random) -> str:
    sentences = " ".join(["{english}"] * generator.randint(3, 12))
    return draw_seed("passage", (Template(sentences),), _WORDS, generator).opening
