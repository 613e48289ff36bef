"""``sapwood inspect`` of a folder with a trained draft."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rich.table import Table

from sapwood.cli.common import output_console, print_json
from sapwood.cli.inspect_tables import formats_of, print_formats_and_files
from sapwood.manifest import read_manifest


def show_draft(folder: Path, as_json: bool) -> None:
    """Prints a draft that passed its checks."""
    report = describe(folder, read_manifest(folder))
    if as_json:
        print_json(report)
    else:
        _print(report)


def describe(folder: Path, manifest: dict[str, Any]) -> dict[str, Any]:
    """The object that ``--json`` prints."""
    draft = {key: value for key, value in manifest["draft"].items() if key != "tensors"}
    formats = formats_of(manifest["draft"]["tensors"])
    return {
        "folder": str(folder),
        "kind": manifest["kind"],
        "name": manifest["name"],
        "schema_version": manifest["schema_version"],
        "sapwood_version": manifest["sapwood_version"],
        "target": manifest["target"],
        "draft": draft,
        "parameters": sum(
            entry["parameters"] for name, entry in formats.items() if name != "int32"
        ),
        "formats": formats,
        "training": manifest.get("training", {}),
        "files": manifest["files"],
        "bytes": sum(entry["bytes"] for entry in manifest["files"]),
        "checks": {"manifest": True, "sizes": True, "checksums": True, "tensors": True},
    }


def _print(report: dict[str, Any]) -> None:
    console = output_console()
    draft, target = report["draft"], report["target"]
    console.print(f"[bold]{report['name']}[/bold]  {report['folder']}", soft_wrap=True)
    facts = Table(show_header=False, box=None, padding=(0, 2, 0, 0))
    kind = draft["kind"].replace("_", " ")
    if draft["parallel"]:
        kind += f" for {draft['parallel']} depths"
    facts.add_row("trained draft", kind)
    facts.add_row("drafts for", f"{target['name']} ({target['family']})")
    facts.add_row("reads", f"layers {', '.join(map(str, draft['feature_layers']))}")
    facts.add_row("can guess", f"{draft['subset']} of {target['vocabulary_size']} tokens")
    facts.add_row("parameters", f"{report['parameters'] / 1e6:.1f} million")
    units = draft["uncertainty_units"]
    facts.add_row("uncertainty network", f"{units} units" if units else "none")
    facts.add_row(
        "written by", f"sapwood {report['sapwood_version']}, schema {report['schema_version']}"
    )
    console.print(facts)
    print_formats_and_files(console, report)
