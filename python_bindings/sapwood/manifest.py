"""A bundle's manifest, read for the parts that Python needs.

The runtime checks a bundle in full when it opens it (runtime_cpp/src/model/bundle.h); what is read
here has passed that.
"""

from __future__ import annotations

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

from sapwood.errors import SapwoodError

MANIFEST = "manifest.json"


def read_manifest(folder: Path) -> dict[str, Any]:
    """The parsed manifest. Raises SapwoodError if it cannot be read."""
    path = folder / MANIFEST
    try:
        document = json.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        raise SapwoodError(
            f"{path}: {error.strerror}; name a folder that `sapwood export` wrote"
        ) from error
    except (ValueError, RecursionError) as error:
        raise SapwoodError(f"{path}: not valid JSON ({error}); export the bundle again") from error
    if not isinstance(document, dict):
        raise SapwoodError(f"{path}: not a JSON object; export the bundle again")
    return document


def file_sha256(manifest: Mapping[str, Any], name: str) -> str:
    """The checksum the manifest gives for a file of the bundle; "" if it lists no such file."""
    for entry in manifest.get("files", []):
        if entry["name"] == name:
            return str(entry["sha256"])
    return ""


def tokenizer_sha256(manifest: Mapping[str, Any]) -> str:
    """Which tokenizer token ids belong to."""
    return file_sha256(manifest, manifest["tokenizer"]["file"])
