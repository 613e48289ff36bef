"""Random changes to the values of a JSON document."""

from __future__ import annotations

import copy
import random
from typing import Any

_VALUES: tuple[Any, ...] = (
    *(None, True, False, 0, -1, 1, 15, 33, 2**31, 2**63, 2**64, -(2**70), 10**400),
    *(0.5, -0.0, 1e308, float("inf"), float("nan")),
    *("", "x", "..", "/etc/passwd", "a\nb\x1b[2J", "\ud800", "F32", "float32", "é" * 300),
    *([], {}, [1, 2], [[[]]], {"a": {"b": 1}}, [None], [True]),
)


def change_json(document: Any, generator: random.Random) -> Any:
    """A copy with one to three values replaced, removed, added or exchanged."""
    changed = copy.deepcopy(document)
    for _ in range(generator.randint(1, 3)):
        places = list(_places(changed))
        if not places:
            return generator.choice(_VALUES)
        parent, key = generator.choice(places)
        other_parent, other_key = generator.choice(places)
        kind = generator.randrange(6)
        if kind == 0:
            parent[key] = copy.deepcopy(generator.choice(_VALUES))
        elif kind == 1:
            del parent[key]
        elif kind == 2:
            parent[key] = copy.deepcopy(other_parent[other_key])
        elif kind == 3 and isinstance(parent, dict):
            parent[f"{key}x"] = copy.deepcopy(parent[key])
        elif isinstance(parent[key], int):
            parent[key] = generator.choice((parent[key] + 1, parent[key] - 1, -parent[key]))
        else:
            parent[key] = copy.deepcopy(generator.choice(_VALUES))
    return changed


def _places(value: Any) -> Any:
    """(container, key) of every value inside."""
    keys: Any = ()
    if isinstance(value, dict):
        keys = list(value)
    elif isinstance(value, list):
        keys = range(len(value))
    for key in keys:
        yield value, key
        yield from _places(value[key])
