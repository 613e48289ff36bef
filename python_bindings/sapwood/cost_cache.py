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


@dataclass(frozen=True)
class CostTable:
    """``milliseconds[context][rows]`` of a verify pass over so many tokens and rows."""

    contexts: list[int]
    rows: list[int]
    milliseconds: list[list[float]]

    def grid(self) -> _runtime.CostGrid:
        """As the runtime takes it. Raises SapwoodError or TypeError if it cannot be a curve."""
        return _runtime.CostGrid(self.contexts, self.rows, self.milliseconds)


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
    table = load_cost_table(key)
    return None if table is None else table.grid()


def load_cost_table(key: CostKey) -> CostTable | None:
    """The same, as the numbers it is made of."""
    try:
        document = json.loads(key.path().read_text(encoding="utf-8"))
        if document["schema_version"] != SCHEMA_VERSION or document["key"] != asdict(key):
            return None
        table = CostTable(document["contexts"], document["rows"], document["milliseconds"])
        table.grid()  # refuses nonsense
    except (OSError, ValueError, KeyError, TypeError, RecursionError, SapwoodError):
        return None
    return table


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
