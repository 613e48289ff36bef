"""Sapwood: language models answer several times faster without changing a word.

``Engine`` runs a bundle that ``sapwood export`` wrote. Everything is loaded on first use, so that
``sapwood.errors`` and the like can be imported where the compiled module is not built.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from sapwood.engine import Chat, Engine
    from sapwood.errors import SapwoodError
    from sapwood.generation import Generation
    from sapwood.stats import Stats
    from sapwood.tokenizer import Tokenizer

__version__ = "0.1.0"
__all__ = ["Chat", "Engine", "Generation", "SapwoodError", "Stats", "Tokenizer", "__version__"]

_HOMES = {
    "Chat": "sapwood.engine",
    "Engine": "sapwood.engine",
    "Generation": "sapwood.generation",
    "SapwoodError": "sapwood.errors",
    "Stats": "sapwood.stats",
    "Tokenizer": "sapwood.tokenizer",
}


def __getattr__(name: str) -> Any:
    if name not in _HOMES:
        raise AttributeError(f"module 'sapwood' has no attribute {name!r}")
    from importlib import import_module

    return getattr(import_module(_HOMES[name]), name)


def __dir__() -> list[str]:
    return sorted([*globals(), *_HOMES])
