"""``sapwood inspect``: what a bundle holds, and whether it is whole."""

from __future__ import annotations

from pathlib import Path
from typing import Any

from rich.table import Table

from sapwood.cli.common import (
    BundleArgument,
    JsonOption,
    human_bytes,
    output_console,
    print_json,
)
from sapwood.cli.inspect_tables import formats_of, print_formats_and_files

# How a program for ExecuTorch computes.
FLAVOURS = {
    "fused": "our layers over the bundle's weights: the same bits as every host",
    "xnnpack": "XNNPACK's linears over weights of its own: near the other hosts' numbers",
}

EXAMPLE = "Example:  sapwood inspect bundles/smollm2 --json"


def inspect(bundle: BundleArgument = None, as_json: JsonOption = False) -> None:
    """Show a bundle's model, tensors, files and checks, or a trained draft's. A damaged one is
    refused by name."""
    from sapwood import _runtime
    from sapwood.cli.inspect_draft import show_draft
    from sapwood.drafting import is_trained_draft
    from sapwood.manifest import read_manifest
    from sapwood.paths import resolve_bundle

    folder = resolve_bundle(bundle)
    if is_trained_draft(folder):
        _runtime.check_draft(str(folder))
        show_draft(folder, as_json)
        return
    _runtime.check_bundle(str(folder))
    report = describe(folder, read_manifest(folder))
    if as_json:
        print_json(report)
    else:
        _print(report)


def describe(folder: Path, manifest: dict[str, Any]) -> dict[str, Any]:
    """The object that ``--json`` prints, for a bundle that passed its checks."""
    target = manifest["target"]
    formats = formats_of(target["tensors"])
    return {
        "bundle": str(folder),
        "name": manifest["name"],
        "schema_version": manifest["schema_version"],
        "sapwood_version": manifest["sapwood_version"],
        "source": manifest["source"],
        "spec": target["spec"],
        "hosts": hosts_of(target),
        "executorch": target.get("executorch"),
        "kv_bytes_per_token": kv_bytes_per_token(target["spec"]),
        "parameters": sum(entry["parameters"] for entry in formats.values()),
        "formats": formats,
        "quantization": manifest["quantization"],
        "numerics": manifest["numerics"],
        "tokenizer": manifest["tokenizer"],
        "drafters": manifest["drafters"],
        "defaults": manifest["defaults"],
        "files": manifest["files"],
        "bytes": sum(entry["bytes"] for entry in manifest["files"]),
        "checks": {"manifest": True, "sizes": True, "checksums": True, "tensors": True},
    }


def hosts_of(target: dict[str, Any]) -> list[str]:
    """What can run the bundle."""
    others = {"onnxruntime": "onnx", "executorch": "executorch"}
    return ["native", *(host for host, entry in others.items() if target.get(entry))]


def _drafter(entry: dict[str, Any], layers: int) -> str:
    if entry["kind"] == "early_exit":
        return f"early exit after {entry['layers']} of {layers} layers"
    return " ".join(filter(None, (entry["kind"].replace("_", " "), entry.get("file"))))


def kv_bytes_per_token(spec: dict[str, Any]) -> dict[str, int]:
    """By the format of the cache, of all layers."""
    from sapwood import _runtime
    from sapwood.options import KV_FORMATS

    return {
        name: _runtime.KvStore.create(
            spec["layers"], spec["kv_heads"], spec["head_dim"], 1, name
        ).bytes_per_slot
        for name in KV_FORMATS
    }


def _print(report: dict[str, Any]) -> None:
    console = output_console()
    spec = report["spec"]
    console.print(f"[bold]{report['name']}[/bold]  {report['bundle']}", soft_wrap=True)
    facts = Table(show_header=False, box=None, padding=(0, 2, 0, 0))
    facts.add_row("family", spec["family"])
    facts.add_row("parameters", f"{report['parameters'] / 1e6:.1f} million")
    facts.add_row(
        "shape",
        f"{spec['layers']} layers, hidden {spec['hidden_size']}, "
        f"intermediate {spec['intermediate_size']}, {spec['heads']} heads over "
        f"{spec['kv_heads']} kv heads of {spec['head_dim']}",
    )
    facts.add_row("vocabulary", str(spec["vocabulary_size"]))
    facts.add_row("context", f"{spec['context_length']} tokens")
    facts.add_row(
        "KV cache",
        ", ".join(
            f"{human_bytes(size)} a token in {name}"
            for name, size in report["kv_bytes_per_token"].items()
        ),
    )
    facts.add_row("made from", f"{report['source']['file']} ({report['source']['kind']})")
    facts.add_row("quantization", str(report["quantization"]["method"]))
    facts.add_row("hosts", ", ".join(report["hosts"]))
    if report["executorch"]:
        facts.add_row("ExecuTorch", FLAVOURS[report["executorch"]["flavour"]])
    if report["drafters"]:
        drafters = (_drafter(entry, spec["layers"]) for entry in report["drafters"])
        facts.add_row("drafters", ", ".join(drafters))
    facts.add_row("ends on", ", ".join(map(str, report["tokenizer"]["eos_token_ids"])))
    facts.add_row(
        "written by", f"sapwood {report['sapwood_version']}, schema {report['schema_version']}"
    )
    console.print(facts)
    print_formats_and_files(console, report)
