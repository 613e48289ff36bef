"""What an engine drafts with: which drafter, and the model or trained draft that it runs."""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from sapwood import _runtime
from sapwood.errors import SapwoodError
from sapwood.manifest import MANIFEST, read_manifest, tokenizer_sha256
from sapwood.paths import resolve_bundle

# With a draft that was trained for the target, where no drafter is named.
DEFAULT_WITH_DRAFT = "cascade"
DEFAULT = "mix"

# Drafts that came with Sapwood: a folder each.
SHIPPED = Path(__file__).parent / "drafts"

_TAKES_BUNDLE = ("model", "cascade")
_TAKES_TRAINED = ("head", "parallel-heads", "cascade")
TAKES_DRAFT = (*_TAKES_TRAINED, "model")  # what the option ``draft`` names


@dataclass(frozen=True)
class Drafting:
    """A drafter by name, with what it runs; both None: nothing."""

    drafter: str
    folder: Path | None = None  # of the trained draft or the bundle that was opened
    model: _runtime.Model | None = None
    trained: _runtime.TrainedDraft | None = None

    def held_out_acceptance(self, *, sampled: bool) -> list[float] | None:
        """Of a trained draft, acceptance by depth on the text that its training held out, where its
        manifest says so."""
        if self.trained is None or self.folder is None:
            return None
        return held_out_acceptance(read_manifest(self.folder), sampled=sampled)


def is_trained_draft(folder: Path) -> bool:
    """Whether a folder holds a trained draft, by what its manifest calls itself."""
    if not (folder / MANIFEST).is_file():
        return False
    return read_manifest(folder).get("kind") == "draft"


def held_out_acceptance(manifest: Mapping[str, Any], *, sampled: bool) -> list[float] | None:
    """Acceptance of a draft at depths 1, 2, ... where every guess before was right: of the
    likeliest token or, ``sampled``, the sum of min(p, q). None where its manifest holds none."""
    depths = manifest.get("training", {}).get("held_out", {}).get("by_depth")
    return depths and [each["overlap" if sampled else "top_after_right"] for each in depths]


def target_of(manifest: Mapping[str, Any]) -> dict[str, Any]:
    """What a draft's manifest calls the target that this bundle is."""
    spec = manifest["target"]["spec"]
    return {
        "name": manifest["name"],
        **{key: spec[key] for key in ("family", "hidden_size", "layers", "vocabulary_size")},
        "tokenizer_sha256": tokenizer_sha256(manifest),
    }


def shipped_draft(manifest: Mapping[str, Any]) -> Path | None:
    """The draft that came with Sapwood for the target in this bundle, or None."""
    wanted = target_of(manifest)
    for path in sorted(SHIPPED.glob(f"*/{MANIFEST}")):
        if read_manifest(path.parent).get("target") == wanted:
            return path.parent
    return None


def open_drafting(
    drafter: str | None,
    draft: str | os.PathLike[str] | None,
    *,
    target: _runtime.Model,
    target_folder: Path,
    manifest: Mapping[str, Any],
    threads: int,
    own_threads: bool = False,
) -> Drafting:
    """What guesses, by the options ``drafter`` and ``draft``; a network on ``threads`` of its own,
    or on those of the target.

    Raises SapwoodError where what it runs is missing, left over or unfit.
    """
    given = draft is not None
    folder = resolve_bundle(draft) if given else _found(drafter, target, manifest)
    if folder is not None and is_trained_draft(folder):
        name = drafter or DEFAULT_WITH_DRAFT
        if name not in _TAKES_TRAINED:
            raise SapwoodError(
                f"draft: the drafter {name} runs no trained draft; choose head, parallel-heads or "
                "cascade, or leave it out"
            )
        trained = _runtime.open_trained_draft(
            str(folder),
            target_folder=str(target_folder),
            target=target,
            threads=threads,
            own_threads=own_threads,
        )
        if name != "cascade" and name != trained.drafter:
            raise SapwoodError(
                f"{folder}: a draft for the drafter {trained.drafter}, not {name}; choose that one"
            )
        return Drafting(name, folder, trained=trained)
    name = drafter or DEFAULT
    if folder is not None:
        if name not in _TAKES_BUNDLE:
            raise SapwoodError(
                f"draft: the drafter {name} runs no other bundle; choose model or cascade, or "
                "leave it out"
            )
        model = _runtime.open_draft_model(
            str(folder),
            target_folder=str(target_folder),
            target=target,
            threads=threads,
            own_threads=own_threads,
        )
        return Drafting(name, folder, model=model)
    if name == "model":
        raise SapwoodError(
            "drafter: model needs a bundle that drafts; name one with the same vocabulary as draft"
        )
    if name in ("head", "parallel-heads"):
        raise SapwoodError(
            f"drafter: {name} needs a draft that was trained for this target, and none came with "
            "Sapwood; name one as draft"
        )
    if name in ("early-exit", "cascade"):
        exit_model = _runtime.open_early_exit(
            str(target_folder), target=target, threads=threads, own_threads=own_threads
        )
        return Drafting(name, model=exit_model)
    return Drafting(name)


def _found(drafter: str | None, target: _runtime.Model, manifest: Mapping[str, Any]) -> Path | None:
    """A shipped draft, where the drafter may be one that runs it."""
    if drafter is None and not target.shows_hidden_states:
        return None  # a trained draft reads them
    if drafter is not None and drafter not in _TAKES_TRAINED:
        return None
    return shipped_draft(manifest)
