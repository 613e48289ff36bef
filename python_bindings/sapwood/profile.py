"""What a prompt asks for, and what speculation therefore begins with (engine/scenario.h).

It chooses how much is drafted, never what is said.
"""

from __future__ import annotations

from collections.abc import Sequence

from sapwood import _runtime
from sapwood.chat_template import Message
from sapwood.options import AnswerOptions


def asked_text(prompt: str | Sequence[Message], system: str | None = None) -> str:
    """What a classifier of prompts reads: what the system says and the latest turn."""
    if isinstance(prompt, str):
        return prompt if system is None else f"{system}\n{prompt}"
    said = [system or "", *(turn["content"] for turn in prompt if turn["role"] == "system")]
    latest = [turn["content"] for turn in prompt if turn["role"] != "system"][-1:]
    return "\n".join([text for text in said if text] + latest)


def scenario_of(options: AnswerOptions, text: str) -> str | None:
    """The scenario that ``options["profile"]`` names or, "auto", that the text is told to be of;
    None: "off", or nothing certain enough."""
    profile = options["profile"]
    if profile == "auto":
        return _runtime.guess_scenario(text)[0]
    return None if profile == "off" else profile


def beginning_with(options: AnswerOptions, scenario: str | None) -> AnswerOptions:
    """``options`` with what the scenario's template says; complete, like ``options``."""
    if scenario is None:
        return options
    length, nodes, beta = _runtime.scenario_template(scenario)
    return {**options, "chain_length": length, "fixed_nodes": nodes, "beta": beta}
