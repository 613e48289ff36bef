"""Seed instructions: what a conversation with the target begins with, written here as templates.

A template is a text with slots. ``{animal}`` is any entry of the bank of that name, which may have
slots of its own; ``{12-40}`` is any number in that range; slots with the same label after a dot,
``{person.a}``, get the same filling throughout a seed. Few lines make many instructions that way.
"""

from __future__ import annotations

import random
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass

# An article ahead of a slot fits what is put in: "a {animal}" becomes "an owl".
_SLOT = re.compile(r"(?:\b(?P<article>[Aa]) )?\{(?P<bank>[a-z_]+|\d+-\d+)(?P<label>\.[a-z]+)?\}")
_TAKES_AN = re.compile(r"[aeio]|un(?!i)|um|ur", re.IGNORECASE)

PASSAGE = "[passage]"  # where a template takes in the text that the target was asked to write first


@dataclass(frozen=True)
class Template:
    """How conversations of one sort begin, and what else the person says.

    With ``passage`` the target is first asked for a text, in a conversation of its own; what it
    wrote stands for ``[passage]`` in the opening.
    """

    opening: str
    follow_ups: tuple[str, ...] = ()
    system: str | None = None
    passage: str | None = None


@dataclass(frozen=True)
class Seed:
    """A filled template."""

    category: str
    opening: str
    follow_ups: tuple[str, ...] = ()
    system: str | None = None
    passage: str | None = None


def fill(
    text: str,
    banks: Mapping[str, Sequence[str]],
    generator: random.Random,
    labelled: dict[str, str],
) -> str:
    """``text`` with every slot filled. ``labelled`` holds the fillings of labels and gains more.

    Raises KeyError for a bank that is not there.
    """

    def filling(slot: re.Match[str]) -> str:
        name = slot["bank"]
        label = name + slot["label"] if slot["label"] else None
        filled = None if label is None else labelled.get(label)
        if filled is None:
            if name[0].isdigit():
                low, high = name.split("-")
                filled = str(generator.randint(int(low), int(high)))
            else:
                filled = fill(generator.choice(banks[name]), banks, generator, labelled)
        if label is not None:
            labelled[label] = filled
        if slot["article"] is None:
            return filled
        article = slot["article"] + ("n" if _TAKES_AN.match(filled) else "")
        return f"{article} {filled}"

    return _SLOT.sub(filling, text)


def draw_seed(
    category: str,
    templates: Sequence[Template],
    banks: Mapping[str, Sequence[str]],
    generator: random.Random,
) -> Seed:
    """Any of the templates, filled, with its follow-ups in any order."""
    template = generator.choice(templates)
    labelled: dict[str, str] = {}

    def filled(text: str | None) -> str | None:
        return None if text is None else fill(text, banks, generator, labelled)

    passage, system = filled(template.passage), filled(template.system)
    opening = fill(template.opening, banks, generator, labelled)
    follow_ups = [fill(text, banks, generator, labelled) for text in template.follow_ups]
    generator.shuffle(follow_ups)
    return Seed(category, opening, tuple(follow_ups), system, passage)
