"""Cost curves that ``sapwood tune`` measured, in the user's cache: one file a device and bundle.

A file says in full what it was measured on, and is used only where all of that still holds. One
that cannot be read, or that says something impossible, counts as not there: the engine then learns
the costs from its own steps, and ``sapwood tune`` writes a new one.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

from sapwood import __version__, _runtime
from sapwood.errors import SapwoodError
from sapwood.manifest import file_sha256
from sapwood.paths import cache_folder

SCHEMA_VERSION = 1


@dataclass(frozen=True)
class CostKey:
    """What the cost of a pass hangs on."""

    processor: str
    kernels: str
    threads: int
    host: str
    kv: str
    weights_sha256: str
    sapwood_version: str

    @classmethod
    def of(cls, manifest: Mapping[str, Any], *, host: str, threads: int, kv: str) -> CostKey:
        """For the bundle with this manifest, on this machine."""
        return cls(
            processor=processor_name(),
            kernels=_runtime.active_kernels(),
            threads=threads,
            host=host,
            kv=kv,
            weights_sha256=file_sha256(manifest, manifest["target"]["weights"]),
            sapwood_version=__version__,
        )

    def path(self) -> Path:
        """Where the curve of this device and bundle lies, if it has been measured."""
        text = json.dumps(asdict(self), sort_keys=True)
        return cache_folder() / "costs" / f"{hashlib.sha256(text.encode()).hexdigest()[:32]}.json"


def processor_name() -> str:
    """The processor's model, as the kernel names it."""
    with suppress(OSError):
        for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
            name, _, value = line.partition(":")
            if name.strip() == "model name":
                return value.strip()
    return platform.processor() or platform.machine()


def load_costs(key: CostKey) -> _runtime.CostGrid | None:
    """What was measured for ``key``, or None."""
    try:
        document = json.loads(key.path().read_text(encoding="utf-8"))
        if document["schema_version"] != SCHEMA_VERSION or document["key"] != asdict(key):
            return None
        return _runtime.CostGrid(document["contexts"], document["rows"], document["milliseconds"])
    except (OSError, ValueError, KeyError, TypeError, RecursionError, SapwoodError):
        return None


def save_costs(
    key: CostKey, contexts: list[int], rows: list[int], milliseconds: list[list[float]]
) -> Path:
    """Writes ``milliseconds[context][rows]`` for ``key``, whole or not at all. Returns its path.

    Raises SapwoodError if the measurements cannot be a curve, OSError if the cache cannot be
    written.
    """
    _runtime.CostGrid(contexts, rows, milliseconds)  # refuses nonsense
    path = key.path()
    path.parent.mkdir(parents=True, exist_ok=True)
    document = {
        "schema_version": SCHEMA_VERSION,
        "key": asdict(key),
        "contexts": contexts,
        "rows": rows,
        "milliseconds": milliseconds,
    }
    temporary = path.with_name(f"{path.name}.{os.getpid()}.partial")
    try:
        temporary.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)
    return path
