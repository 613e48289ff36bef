"""The drafts inside the package: whole, small, and with a card that says how they were made."""

from __future__ import annotations

import hashlib
import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sapwood
from sapwood_export.distill.draft_folder import read_draft

FOLDERS = sorted(
    path.parent for path in Path(sapwood.__file__).parent.glob("drafts/*/manifest.json")
)
LARGEST_BYTES = 12_000_000

pytestmark = pytest.mark.parametrize("folder", FOLDERS, ids=lambda folder: folder.name)


def manifest_of(folder: Path) -> dict[str, Any]:
    manifest: dict[str, Any] = json.loads((folder / "manifest.json").read_text(encoding="utf-8"))
    return manifest


def test_a_shipped_draft_is_whole_and_small(folder: Path) -> None:
    manifest = manifest_of(folder)
    listed = {entry["name"]: entry for entry in manifest["files"]}
    assert set(listed) | {"manifest.json"} == {path.name for path in folder.iterdir()}
    for name, entry in listed.items():
        content = (folder / name).read_bytes()
        assert len(content) == entry["bytes"]
        assert hashlib.sha256(content).hexdigest() == entry["sha256"]
    assert sum(path.stat().st_size for path in folder.iterdir()) <= LARGEST_BYTES


def test_a_shipped_drafts_weights_are_finite_and_of_its_vocabulary(folder: Path) -> None:
    manifest, draft = manifest_of(folder), read_draft(folder)
    assert (np.diff(draft.vocabulary_ids) > 0).all()
    assert draft.vocabulary_ids[-1] < manifest["target"]["vocabulary_size"]
    h = manifest["target"]["hidden_size"]
    assert draft.tensors["head"].shape == (len(draft.vocabulary_ids), h)
    assert draft.tensors["fuse"].shape == (h, len(draft.feature_layers) * h)
    assert draft.uncertainty_units > 0
    assert all(np.isfinite(tensor).all() for tensor in draft.tensors.values())


def test_a_shipped_drafts_card_says_how_it_was_made(folder: Path) -> None:
    training = manifest_of(folder)["training"]
    card = (folder / "README.md").read_text(encoding="utf-8")
    assert f"{training['tokens']:,} tokens" in card
    assert f"seed {training['seed']}" in card
    first = training["held_out"]["by_depth"][0]
    assert f"{first['top']:.3f}" in card
    assert all(category in card for category in training["data"]["mix"])
