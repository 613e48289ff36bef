"""Every option of an engine and of an answer, once: type, default, range and what it does.

``Engine``, its ``generate`` and every command that makes answers take them from here. To add one,
add a line to ``EngineOptions`` or ``AnswerOptions``, and use its value where those are consumed:
``Engine.new_session`` and ``generation.start_session``.
"""

from __future__ import annotations

import functools
import inspect
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, TypedDict, TypeVar, get_type_hints

from sapwood.errors import SapwoodError

MODES = ("plain", "chain", "fixed", "dynamic")
HOSTS = ("native", "onnxruntime", "executorch")
KV_FORMATS = ("float16", "int8")
VERIFIERS = ("target_draw", "rejection", "block", "traversal")
LENGTH_RULES = ("window", "entropy")
LOOKUP_DRAFTERS = ("mix", "ngram", "successor")
DOUBLE_BUFFERS = ("measured", "on", "off")
# As the runtime calls them: sapwood._runtime.scenario_names().
SCENARIOS = ("structure", "reasoning", "creativity", "knowledge")
PROFILES = ("off", "auto", *SCENARIOS)
DRAFTERS = (*LOOKUP_DRAFTERS, "none", "model", "early-exit", "head", "parallel-heads", "cascade")


@dataclass(frozen=True)
class Option:
    """What there is to know of an option beside its type. Limits are inclusive.

    ``command_type``: what the command line parses, where Python takes more.
    """

    default: Any
    help: str
    minimum: float | None = None
    maximum: float | None = None
    choices: tuple[str, ...] = ()
    command_type: Any = None

    def check(self, name: str, value: Any) -> None:
        """Raises SapwoodError for a value out of range. The default is always allowed."""
        if value is self.default:
            return
        if self.choices and value not in self.choices:
            raise SapwoodError(f"{name}: must be one of {', '.join(self.choices)}, not {value!r}")
        if self.minimum is not None and not value >= self.minimum:
            raise SapwoodError(f"{name}: must be at least {self.minimum:g}, not {value}")
        if self.maximum is not None and not value <= self.maximum:
            raise SapwoodError(f"{name}: must be at most {self.maximum:g}, not {value}")


class HostOptions(TypedDict, total=False):
    """Where a model runs, and what its cache is made of."""

    host: Annotated[
        str, Option("native", "What runs the model; all give the same tokens.", choices=HOSTS)
    ]
    threads: Annotated[
        int | None, Option(None, "Without it: one for each core.", minimum=1, maximum=64)
    ]
    kv: Annotated[
        str,
        Option(
            "float16",
            "How keys and values are kept: float16, or int8: half the memory and faster attention, "
            "but other rounding, so other text here and there. int8: the native host only.",
            choices=KV_FORMATS,
        ),
    ]


class EngineOptions(HostOptions, total=False):
    """Keyword arguments of ``Engine``."""

    mode: Annotated[
        str | None,
        Option(
            None,
            "How to decode: plain (no draft), chain, fixed (tree of a fixed shape), dynamic (tree "
            "cut to measure). All give the same tokens. Without it: what the bundle says.",
            choices=MODES,
        ),
    ]
    drafter: Annotated[
        str | None,
        Option(
            None,
            "What guesses: ngram (what followed in the text), successor (what the target itself "
            "said after the same tokens), mix (both), none, model (the bundle of --draft), "
            "early-exit (the target's first layers, if it was exported with one), head or "
            "parallel-heads (a draft that was trained for the target), cascade (mix first, one of "
            "these four where it leaves something open). Without it: cascade where a draft was "
            "trained for the target, else mix.",
            choices=DRAFTERS,
        ),
    ]
    draft: Annotated[
        str | os.PathLike[str] | None,
        Option(
            None,
            "What drafts: a folder with a draft that was trained for the target (head, "
            "parallel-heads, cascade), or a bundle with the same vocabulary (model, cascade). "
            "Without it: the draft that came with Sapwood, where there is one for this target.",
            command_type=Path | None,
        ),
    ]
    draft_threads: Annotated[
        int,
        Option(
            0,
            "Threads of its own for a network that drafts, beside those of the target: it may then "
            "draft ahead while the target verifies. 0: it takes turns on the target's.",
            minimum=0,
            maximum=64,
        ),
    ]
    double_buffer: Annotated[
        str,
        Option(
            "measured",
            "With draft threads, whether they draft ahead: measured (where that turns out to be "
            "faster), on or off. Same tokens.",
            choices=DOUBLE_BUFFERS,
        ),
    ]
    governor: Annotated[
        bool,
        Option(
            False,
            "Speculate less when the device is hot (above 45 C, at 55 C not at all) or draws more "
            "than 4 W from its battery, as on a phone. Same tokens.",
        ),
    ]
    ngram: Annotated[
        str | os.PathLike[str] | None,
        Option(
            None,
            "A table that `sapwood ngram build` wrote, for mix, successor or cascade to begin "
            "with.",
            command_type=Path | None,
        ),
    ]
    context_length: Annotated[
        int | None,
        Option(
            None,
            "Tokens that prompt and answer may have together. Without it: what the bundle says.",
            minimum=1,
        ),
    ]
    kv_slots: Annotated[
        int | None,
        Option(
            None,
            "Tokens that the KV cache has room for. What the present text leaves of it keeps "
            "earlier prompts and answers, the longest unused going first; a prompt that begins "
            "like one of them is computed only from where it parts ways. Without it: the context "
            "and a step's guesses.",
            minimum=1,
        ),
    ]
    forget_texts: Annotated[
        bool,
        Option(
            False,
            "Keep nothing of a text once another one begins. The answers are the same.",
        ),
    ]


class AnswerOptions(TypedDict, total=False):
    """Keyword arguments of ``Engine.generate``."""

    mode: Annotated[str | None, Option(None, "Without it: the engine's.", choices=MODES)]
    temperature: Annotated[
        float, Option(0.0, "0 is greedy: always the most likely token.", minimum=0)
    ]
    top_k: Annotated[int, Option(0, "Keep the k most likely tokens; 0: all.", minimum=0)]
    top_p: Annotated[
        float, Option(1.0, "Keep the likeliest tokens up to this mass.", minimum=0, maximum=1)
    ]
    min_p: Annotated[
        float,
        Option(0.0, "Drop tokens below this share of the likeliest one's.", minimum=0, maximum=1),
    ]
    repetition_penalty: Annotated[
        float, Option(1.0, "Above 1: tokens seen before count less.", minimum=0.01)
    ]
    seed: Annotated[
        int,
        Option(
            0,
            "Of the sampling; with the verifier target_draw every mode gives the same.",
            minimum=0,
        ),
    ]
    max_new_tokens: Annotated[int, Option(256, "Most tokens to generate.", minimum=1)]
    stop: Annotated[
        str | Sequence[str] | None,
        Option(
            None,
            "End before this text; may be given several times.",
            command_type=list[str] | None,
        ),
    ]
    chain_length: Annotated[
        int, Option(4, "Guesses a step of the mode chain.", minimum=1, maximum=255)
    ]
    fixed_nodes: Annotated[
        int, Option(15, "Nodes of the tree of the mode fixed.", minimum=1, maximum=255)
    ]
    profile: Annotated[
        str,
        Option(
            "off",
            "Take the length of chains, the nodes of fixed trees and beta from a table by what the "
            "prompt asks for: auto (a classifier reads it), structure, reasoning, creativity or "
            "knowledge. Same tokens.",
            choices=PROFILES,
        ),
    ]
    adapt: Annotated[
        bool,
        Option(
            False,
            "Let chain and fixed fall back where guesses fail, chains take their length by the "
            "length rule, and beta follow the length of the steps.",
        ),
    ]
    length_rule: Annotated[
        str,
        Option(
            "window",
            "What an adapting chain takes its length from: window (how many guesses came true "
            "lately) or entropy (how certain the draft is).",
            choices=LENGTH_RULES,
        ),
    ]
    verifier: Annotated[
        str,
        Option(
            "target_draw",
            "How a sampled draft is judged. target_draw: the text at a seed is plain decoding's. "
            "rejection, traversal, block (chains): drafts are drawn too; the text has the same "
            "law, but which text comes at a seed depends on the drafts. Greedy: all alike.",
            choices=VERIFIERS,
        ),
    ]
    least_accepted_length: Annotated[
        float,
        Option(
            0.0,
            "Where steps emit fewer tokens than this (1.5 is usual), try chains and plain "
            "decoding, and keep what turns out to be faster; 0: never. Same tokens.",
            minimum=0,
        ),
    ]
    target_milliseconds: Annotated[
        float,
        Option(
            0.0,
            "Where tokens take longer than this in the modes chain and fixed, try trees that grow "
            "as far as it pays, and keep what turns out to be faster; 0: never. Same tokens.",
            minimum=0,
        ),
    ]
    beta: Annotated[
        float,
        Option(
            0.3,
            "The share pruned of a draft's law where the draft is certain.",
            minimum=0,
            maximum=1,
        ),
    ]


_List = TypeVar("_List")
_Function = TypeVar("_Function", bound=Callable[..., Any])


@functools.cache
def options_of(listed: type) -> Mapping[str, tuple[Any, Option]]:
    """(type, option) by name, of one of the classes above."""
    found = {}
    for name, hint in get_type_hints(listed, include_extras=True).items():
        (option,) = hint.__metadata__
        found[name] = (hint.__origin__, option)
    return found


def completed(listed: type[_List], given: _List) -> _List:
    """``given`` with the default of every option that is missing.

    Raises TypeError for one that is not on the list, SapwoodError for a value out of range.
    """
    known = options_of(listed)  # type: ignore[arg-type]
    values: dict[str, Any] = dict(given)  # type: ignore[call-overload]
    for name, value in values.items():
        if name not in known:
            raise TypeError(f"there is no option {name!r}; there are {', '.join(known)}")
        known[name][1].check(name, value)
    return {name: option.default for name, (_, option) in known.items()} | values  # type: ignore[return-value]


def showing(listed: type) -> Callable[[_Function], _Function]:
    """Lets ``help`` show the options behind a function's ``**options``, with their defaults."""

    def describe(function: _Function) -> _Function:
        signature = inspect.signature(function)
        parameters = list(signature.parameters.values())[:-1]
        for name, (kind, option) in options_of(listed).items():
            parameters.append(
                inspect.Parameter(
                    name,
                    inspect.Parameter.KEYWORD_ONLY,
                    default=option.default,
                    annotation=inspect.formatannotation(kind),
                )
            )
        function.__signature__ = signature.replace(parameters=parameters)  # type: ignore[attr-defined]
        return function

    return describe


def ids_must_agree(options: AnswerOptions) -> bool:
    """Whether every mode gives the ids of plain decoding: always when decoding greedily, else with
    the verifier that draws from the target. The others keep the law of the text, not the text."""
    return options["verifier"] == "target_draw" or options["temperature"] == 0


def default_threads() -> int:
    """The cores this process may run on."""
    return max(1, len(os.sched_getaffinity(0)))


def checked_stops(stop: str | Sequence[str] | None) -> list[str]:
    stops = [stop] if isinstance(stop, str) else list(stop or ())
    if "" in stops:
        raise SapwoodError("stop: an empty text would end every answer; give it some characters")
    return stops
