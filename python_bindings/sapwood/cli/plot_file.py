"""``--plot FILE`` of the commands that draw."""

from __future__ import annotations

from pathlib import Path

from sapwood.errors import SapwoodError


def check_plot(path: Path) -> None:
    """Raises before anything is measured if the picture could not be written afterwards."""
    if path.suffix.lower() != ".png":
        raise SapwoodError(f"--plot {path}: give a file that ends in .png")
    if not path.parent.is_dir():
        raise SapwoodError(f"--plot {path}: there is no folder {path.parent}; make it first")
    try:
        import matplotlib  # noqa: F401
    except ImportError:
        raise SapwoodError("--plot needs matplotlib: pip install 'sapwood[plot]'") from None
