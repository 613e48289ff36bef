"""Conversations of the target with itself, as scripts that ask for one continuation at a time.

A script is a generator. It yields what it wants next, an ``Ask``, and is sent the ``Reply``;
between the two any number of others take their turns, which is how a batch is kept full.
"""

from __future__ import annotations

import random
from collections.abc import Generator, Sequence
from dataclasses import dataclass

from sapwood.chat_template import Message
from sapwood.tokenizer import Tokenizer
from sapwood_export.distill.seeds import PASSAGE, Seed
from sapwood_export.distill.seeds_mix import FREE

TEMPERATURES = (0.0, 0.5, 0.8, 1.0)
TEMPERATURE_WEIGHTS = (4, 2, 3, 2)
LONGEST_ANSWER = 320  # tokens
LONGEST_USER_TURN = 160
LONGEST_PASSAGE = 360
_TURNS = (1, 1, 2, 3)  # of the person in a conversation, each as likely
_USER_TEMPERATURE = 1.0  # of turns that the target writes for the person: all alike when greedy

_STAND_IN = "\U0010fff0"  # for a turn, while the template writes what is around it
_SYSTEMS = (
    "You are a helpful assistant.",
    "You are a helpful assistant that writes code.",
    "You are a teacher of mathematics who explains every step.",
    "You are a friendly conversation partner.",
    "You are an experienced editor.",
    "Answer briefly.",
)


@dataclass(frozen=True)
class Ask:
    """Asks for a continuation of this conversation's text by ``tokens``, and then the target.

    ``new`` begins another text: the one before it is finished.
    """

    tokens: list[int]
    longest: int
    temperature: float
    new: bool = False


@dataclass(frozen=True)
class Reply:
    """What the target wrote, without the token that ended it."""

    tokens: list[int]
    ended: bool  # by a token that ends a turn; else it was cut: too long, or going round in circles


Script = Generator[Ask, Reply, bool]


class Turns:
    """The chat template in pieces: what it writes ahead of a turn, and between two of them."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self.tokenizer = tokenizer

    def opening(self, messages: Sequence[Message]) -> list[int]:
        """Up to where the answer to these messages begins."""
        return self.tokenizer.encode_chat(messages)

    def before_user(self, system: str | None) -> list[int]:
        """Up to where the person's first turn begins."""
        return self._whole(self._around([*_system(system), _user(_STAND_IN)])[0])

    def after_user(self, system: str | None) -> list[int]:
        """From the end of the person's first turn to where the answer begins."""
        return self._piece(self._around([*_system(system), _user(_STAND_IN)])[1])

    def next_turn(self, text: str | None) -> tuple[list[int], list[int]]:
        """From the end of an answer through the person's next turn to where the answer begins.

        Without a text, in two parts: up to where the person's turn begins, and from its end on.
        """
        turn = _STAND_IN if text is None else text
        messages = [_user("Hi"), {"role": "assistant", "content": _STAND_IN}, _user(turn)]
        rendered = self.tokenizer.render_chat(messages).split(_STAND_IN)
        if text is not None:
            return self._piece(rendered[-1]), []
        return self._piece(rendered[-2]), self._piece(rendered[-1])

    def _around(self, messages: Sequence[Message]) -> list[str]:
        return self.tokenizer.render_chat(messages).split(_STAND_IN)

    def _piece(self, text: str) -> list[int]:
        return self.tokenizer.encode(text, markers=True)

    def _whole(self, text: str) -> list[int]:
        tokens = self._piece(text)
        bos = self.tokenizer.bos_token_id
        return tokens if bos is None or tokens[:1] == [bos] else [bos, *tokens]


def converse(seed: Seed, turns: Turns, generator: random.Random) -> Script:
    """The conversation that a seed begins. Returns whether its last text is worth keeping."""
    temperature = generator.choices(TEMPERATURES, TEMPERATURE_WEIGHTS)[0]
    further = generator.choice(_TURNS) - 1
    if seed.category == FREE:
        return (yield from _free(turns, temperature, further, generator))
    opening, system = seed.opening, seed.system
    if seed.passage is not None:
        asked = turns.opening([_user(seed.passage)])
        reply = yield Ask(asked, LONGEST_PASSAGE, temperature)
        passage = _whole_sentences(turns.tokenizer.decode(reply.tokens))
        if not passage:
            return False
        opening = opening.replace(PASSAGE, passage)
        system = None if system is None else system.replace(PASSAGE, passage)
    prompt = turns.opening([*_system(system), _user(opening)])
    reply = yield Ask(prompt, LONGEST_ANSWER, temperature, new=seed.passage is not None)
    for text in seed.follow_ups[:further]:
        if not reply.ended:
            break
        reply = yield Ask(turns.next_turn(text)[0], LONGEST_ANSWER, temperature)
    return True


def _free(turns: Turns, temperature: float, further: int, generator: random.Random) -> Script:
    """Both sides from the template alone, as in Xu et al., "Magpie", 2024."""
    system = generator.choice(_SYSTEMS) if generator.random() < 0.4 else None
    before, after = turns.before_user(system), turns.after_user(system)
    for turn in range(further + 1):
        reply = yield Ask(before, LONGEST_USER_TURN, _USER_TEMPERATURE)
        if not reply.ended or not reply.tokens:
            return turn > 0
        reply = yield Ask(after, LONGEST_ANSWER, temperature)
        if not reply.ended:
            break
        before, after = turns.next_turn(None)
    return True


def _user(text: str) -> Message:
    return {"role": "user", "content": text}


def _system(text: str | None) -> list[Message]:
    return [] if text is None else [{"role": "system", "content": text}]


def _whole_sentences(text: str) -> str:
    """``text`` without a sentence that was cut off at its end."""
    text = text.strip()
    end = max(text.rfind(mark) for mark in (". ", ".\n", "!", "?", "."))
    return text[: end + 1].strip()
