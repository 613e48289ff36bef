"""What ``sapwood bench suite`` sets side by side: modes, each with several drafters or profiles."""

from __future__ import annotations

import itertools
from collections.abc import Sequence
from dataclasses import dataclass

from sapwood.options import AnswerOptions
from sapwood.profile import beginning_with, scenario_of


@dataclass(frozen=True)
class Side:
    """A way to answer, by a name that no other has; what is None is as the options say."""

    name: str
    mode: str
    drafter: str | None = None
    profile: str | None = None

    def options(self, options: AnswerOptions, prompt: str) -> AnswerOptions:
        """Those of this side's answer to a prompt, of the complete ones of the run."""
        own: AnswerOptions = {**options, "mode": self.mode}
        if self.profile is not None:
            own["profile"] = self.profile
        return beginning_with(own, scenario_of(own, prompt))


def sides_of(modes: Sequence[str], drafters: Sequence[str], profiles: Sequence[str]) -> list[Side]:
    """Every mode with every drafter and profile, named by what there are several of; plain decoding
    knows neither."""
    sides = []
    for mode in modes:
        if mode == "plain":
            sides.append(Side(mode, mode))
            continue
        for drafter, profile in itertools.product(drafters or (None,), profiles or (None,)):
            parts = (drafter if len(drafters) > 1 else None, profile if len(profiles) > 1 else None)
            name = " ".join((mode, *filter(None, parts)))
            sides.append(Side(name, mode, drafter, profile))
    return sides
