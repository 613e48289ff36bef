"""Checkpoints: what training needs to go on as if it had never stopped."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import torch

from sapwood.errors import SapwoodError

FILE = "checkpoint.pt"
VERSION = 1


def save(folder: Path, state: dict[str, Any]) -> None:
    """Replaces the folder's checkpoint; a process killed meanwhile leaves the previous one."""
    folder.mkdir(parents=True, exist_ok=True)
    partial = folder / f".{FILE}.partial"
    torch.save({"version": VERSION, **state}, partial)
    os.replace(partial, folder / FILE)


def load(folder: Path) -> dict[str, Any] | None:
    """The folder's checkpoint; None where there is none yet."""
    path = folder / FILE
    if not path.is_file():
        return None
    try:
        state: dict[str, Any] = torch.load(path, map_location="cpu", weights_only=True)
    except Exception as error:  # torch raises whatever the damage leads to
        reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise SapwoodError(
            f"{path}: cannot be read: {reason}; remove it to train from the beginning"
        ) from None
    if state.get("version") != VERSION:
        raise SapwoodError(
            f"{path}: made by another version of Sapwood; remove it to train from the beginning"
        )
    return state
