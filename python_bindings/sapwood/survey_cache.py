"""What ``sapwood tune`` found a bundle's target to say after every token, in the user's cache.

Drafters begin with it where no other table is given. It hangs on the weights alone, not on the
device; a file that cannot be used counts as not there.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from sapwood import _runtime
from sapwood.errors import SapwoodError
from sapwood.manifest import file_sha256, tokenizer_sha256
from sapwood.paths import cache_folder

if TYPE_CHECKING:
    from collections.abc import Callable

    from sapwood.tokenizer import Tokenizer

# Drafters that take a table to begin with.
BEGINNERS = ("mix", "successor", "cascade")
_AT_ONCE = 252  # tokens between two moves of a progress bar


def survey_path(manifest: Mapping[str, Any]) -> Path:
    """Where the survey of this bundle's target lies, if it has been made."""
    weights = file_sha256(manifest, manifest["target"]["weights"])
    return cache_folder() / "surveys" / f"{weights[:32]}.ngram"


def load_survey(manifest: Mapping[str, Any]) -> _runtime.NgramTable | None:
    """What was found out about this bundle's target, or None."""
    path = survey_path(manifest)
    if not path.is_file():
        return None
    try:
        return _runtime.NgramTable.read(
            str(path),
            vocabulary=manifest["target"]["spec"]["vocabulary_size"],
            tokenizer_sha256=tokenizer_sha256(manifest),
        )
    except SapwoodError:
        return None


def make_survey(
    model: _runtime.Model,
    tokenizer: Tokenizer,
    manifest: Mapping[str, Any],
    progress: Callable[[range], Iterable[int]],
) -> Path:
    """Asks the target, writes what it said, whole or not at all, and returns its path.

    ``progress`` passes a range on. Raises OSError or SapwoodError if the cache cannot be written.
    """
    if tokenizer.chat_template is None:
        context = tokenizer.encode_prompt("The")
    else:
        context = tokenizer.encode_chat([{"role": "user", "content": "Go on."}])
    survey = _runtime.TargetSurvey.create(model, context)
    for _ in progress(range(0, survey.tokens, _AT_ONCE)):
        survey.ask(_AT_ONCE)
    path = survey_path(manifest)
    path.parent.mkdir(parents=True, exist_ok=True)
    survey.table(tokenizer_sha256=tokenizer_sha256(manifest)).write(str(path))
    return path
