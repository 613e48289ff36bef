"""Writing a bundle's files into a folder that is not yet its final one."""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from sapwood_export.bundle import (
    CHAT_TEMPLATE,
    DRAFT_GRAPH,
    EARLY_EXIT,
    EXECUTORCH_PROGRAM,
    ONNX_GRAPH,
    PRUNED_GRAPH,
    SCHEMA_VERSION,
    TOKENIZER,
    WEIGHTS,
    Manifest,
    Progress,
)
from sapwood_export.layout import BundleTensor, PackedTensor, offsets
from sapwood_export.packing import ALIGNMENT
from sapwood_export.sources.base import ModelSource
from sapwood_export.staging import MANIFEST

OPERATOR_DOMAIN = "com.endpoint.ai"
OPERATOR_VERSION = 1

_READ_SIZE = 1 << 22


def write_weights(
    folder: Path,
    tensors: Sequence[BundleTensor],
    progress: Progress | None,
    name: str = WEIGHTS,
) -> dict[str, Any]:
    """Streams the tensors to the weights file; returns its entry for the list of files."""
    total = weights_size(tensors)
    digest, written = hashlib.sha256(), 0
    with (folder / name).open("wb") as file:
        for tensor, offset in zip(tensors, offsets(list(tensors)), strict=True):
            padding = bytes(offset - written)
            file.write(padding)
            digest.update(padding)
            written = offset
            for chunk in tensor.chunks():
                file.write(chunk.data)
                digest.update(chunk.data)
                written += chunk.nbytes
                if progress is not None:
                    progress("weights", written, total)
        padding = bytes(total - written)
        file.write(padding)
        digest.update(padding)
    return {"name": name, "bytes": total, "sha256": digest.hexdigest()}


def weights_size(tensors: Sequence[BundleTensor]) -> int:
    """Bytes of the weights file, a multiple of the alignment."""
    sizes = (tensor.size for tensor in tensors)
    return sum((size + ALIGNMENT - 1) // ALIGNMENT * ALIGNMENT for size in sizes)


def tensor_entries(tensors: Sequence[BundleTensor]) -> dict[str, Any]:
    """The manifest's entry for each tensor: its format, shape and place in the weights file."""
    return {
        tensor.name: {
            "format": tensor.format,
            "shape": list(tensor.shape),
            "offset": offset,
            "bytes": tensor.size,
        }
        for tensor, offset in zip(tensors, offsets(list(tensors)), strict=True)
    }


def write_tokenizer(folder: Path, source: ModelSource) -> list[dict[str, Any]]:
    """tokenizer.json and the chat template; returns their entries for the list of files."""
    names = [TOKENIZER]
    (folder / TOKENIZER).write_bytes(source.tokenizer.json_bytes)
    if source.tokenizer.chat_template is not None:
        # No newline translation: a template's whitespace is part of the prompt it renders.
        (folder / CHAT_TEMPLATE).write_bytes(source.tokenizer.chat_template.encode("utf-8"))
        names.append(CHAT_TEMPLATE)
    return [file_entry(folder / name) for name in names]


def file_entry(path: Path) -> dict[str, Any]:
    """Name, size and SHA-256 of a file."""
    digest, size = hashlib.sha256(), 0
    with path.open("rb") as file:
        while block := file.read(_READ_SIZE):
            digest.update(block)
            size += len(block)
    return {"name": path.name, "bytes": size, "sha256": digest.hexdigest()}


def write_manifest(folder: Path, manifest: Manifest) -> None:
    """The manifest last: a folder that has one is complete."""
    text = json.dumps(manifest, indent=1, ensure_ascii=False) + "\n"
    (folder / MANIFEST).write_text(text, encoding="utf-8", newline="\n")


def add_extra_files(folder: Path, manifest: Manifest, flavour: str | None = None) -> None:
    """Lists what was written after the manifest, the graphs above all, and writes it again.

    ``flavour`` is that of the program for ExecuTorch, if there is one.
    """
    listed = {entry["name"] for entry in manifest["files"]} | {MANIFEST}
    for path in sorted(folder.iterdir()):
        if path.name not in listed:
            manifest["files"].append(file_entry(path))
    if (folder / ONNX_GRAPH).is_file():
        manifest["target"]["onnx"] = ONNX_GRAPH
    if flavour is not None:
        manifest["target"]["executorch"] = {"file": EXECUTORCH_PROGRAM, "flavour": flavour}
    if (folder / DRAFT_GRAPH).is_file():
        manifest["drafters"].append({"kind": PRUNED_GRAPH, "file": DRAFT_GRAPH})
    write_manifest(folder, manifest)


def make_manifest(
    source: ModelSource,
    tensors: Sequence[BundleTensor],
    files: list[dict[str, Any]],
    *,
    sapwood_version: str,
    context_length: int,
    early_exit: int | None = None,
) -> Manifest:
    """The manifest of a native bundle. ``early_exit``: after so many layers it may draft."""
    tokenizer = source.tokenizer
    return {
        "schema_version": SCHEMA_VERSION,
        "sapwood_version": sapwood_version,
        "name": source.name,
        "source": {"kind": source.kind, "file": source.path.resolve().name},
        "target": {
            "spec": source.spec.to_manifest(),
            "weights": WEIGHTS,
            "tensors": tensor_entries(tensors),
            "onnx": None,
        },
        "tokenizer": {
            "file": TOKENIZER,
            "chat_template": None if tokenizer.chat_template is None else CHAT_TEMPLATE,
            "bos_token_id": tokenizer.bos_token_id,
            "eos_token_ids": list(tokenizer.eos_token_ids),
            "special_tokens": tokenizer.special_tokens,
            "encode": "without special tokens, then bos_token_id in front once if it is not null",
        },
        "quantization": _quantization(tensors),
        "operators": {"domain": OPERATOR_DOMAIN, "version": OPERATOR_VERSION},
        "numerics": {
            "row_invariant": True,
            "activation_bits": 8,
            "activation_group": 32,
            "kv": "float16",
        },
        "drafters": [] if early_exit is None else [{"kind": EARLY_EXIT, "layers": early_exit}],
        "defaults": {"mode": "dynamic", "context_length": context_length},
        "files": files,
    }


def _quantization(tensors: Sequence[BundleTensor]) -> dict[str, Any]:
    """How the packed tensors came about, and which mix parts of different formats."""
    methods: Counter[str] = Counter()
    by_format: Counter[str] = Counter(tensor.format for tensor in tensors)
    source_formats: Counter[str] = Counter()
    mixed: dict[str, Any] = {}
    for tensor in tensors:
        if not isinstance(tensor, PackedTensor):
            continue
        parts = {}
        for part in tensor.parts:
            method = tensor.method(part)
            methods[method] += 1
            source_formats[part.format] += 1
            parts[part.name] = {"format": part.format, "method": method}
        if len({part.format for part in tensor.parts}) > 1:
            mixed[tensor.name] = parts
    return {
        "method": "+".join(sorted(methods)),
        "by_method": dict(sorted(methods.items())),
        "by_format": dict(sorted(by_format.items())),
        "source_formats": dict(sorted(source_formats.items())),
        "mixed": mixed,
    }
