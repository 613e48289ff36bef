"""What ``sapwood inspect`` shows alike of bundles and of trained drafts: tensors and files."""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Mapping
from typing import Any

from rich.console import Console
from rich.table import Table

from sapwood.cli.common import human_bytes


def formats_of(tensors: Mapping[str, Any]) -> dict[str, dict[str, int]]:
    """By format: how many tensors, how many numbers in them and how many bytes."""
    formats: dict[str, dict[str, int]] = defaultdict(
        lambda: {"tensors": 0, "parameters": 0, "bytes": 0}
    )
    for tensor in tensors.values():
        entry = formats[tensor["format"]]
        entry["tensors"] += 1
        entry["parameters"] += math.prod(tensor["shape"])
        entry["bytes"] += tensor["bytes"]
    return dict(formats)


def print_formats_and_files(console: Console, report: Mapping[str, Any]) -> None:
    """The end of what a person sees, after the facts."""
    formats = Table("format", "tensors", "parameters", "bytes", box=None, padding=(0, 2, 0, 0))
    for name, entry in sorted(report["formats"].items()):
        formats.add_row(
            name,
            str(entry["tensors"]),
            f"{entry['parameters']:,}",
            human_bytes(entry["bytes"]),
        )
    console.print(formats)
    files = Table("file", "bytes", "sha256", box=None, padding=(0, 2, 0, 0))
    for entry in report["files"]:
        files.add_row(entry["name"], human_bytes(entry["bytes"]), entry["sha256"][:16] + "...")
    console.print(files)
    console.print("checks: manifest, file sizes, checksums, tensors: all good", style="green")
