"""Where Sapwood keeps things for a user: caches, and the default bundle."""

from __future__ import annotations

import os
from pathlib import Path

from sapwood.errors import SapwoodError

DEFAULT_BUNDLE_NAME = "smollm2-135m-instruct"


def cache_folder() -> Path:
    """``$XDG_CACHE_HOME/sapwood``, or ``~/.cache/sapwood``. It need not exist."""
    base = os.environ.get("XDG_CACHE_HOME")
    # The XDG specification asks to ignore a relative path.
    root = Path(base) if base and Path(base).is_absolute() else Path.home() / ".cache"
    return root / "sapwood"


def default_bundle() -> Path:
    """The bundle that is used when none is named; ``scripts/run`` makes it."""
    return cache_folder() / "bundles" / DEFAULT_BUNDLE_NAME


def resolve_bundle(bundle: str | os.PathLike[str] | None) -> Path:
    """The folder of the bundle named, or the default one. Raises SapwoodError if there is none."""
    if bundle is None:
        folder = default_bundle()
        if not folder.is_dir():
            raise SapwoodError(
                f"no bundle was named and there is none at {folder}; "
                "run scripts/run once to make it, or name one"
            )
        return folder
    folder = Path(bundle)
    if not folder.exists():
        raise SapwoodError(f"{folder}: no such bundle; name a folder that `sapwood export` wrote")
    if not folder.is_dir():
        raise SapwoodError(
            f"{folder}: not a bundle but a file; name the folder that `sapwood export` wrote"
        )
    return folder
