"""Reading a bundle: its manifest, the checks it has to pass, and its weights as plain numbers."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sapwood.errors import SapwoodError
from sapwood_export.packing import ALIGNMENT, packed_bytes, unpack
from sapwood_export.quantize.formats import linear_format
from sapwood_export.spec import ModelSpec
from sapwood_export.staging import MANIFEST

SCHEMA_VERSION = 1

WEIGHTS = "target.weights"
TOKENIZER = "tokenizer.json"
CHAT_TEMPLATE = "chat_template.jinja"
ONNX_GRAPH = "target.onnx"
EXECUTORCH_PROGRAM = "target.pte"

DRAFT_GRAPH = "draft.onnx"

# Kinds of drafters: the target's first layers, and an ONNX graph that gives pruned candidates.
EARLY_EXIT = "early_exit"
PRUNED_GRAPH = "pruned_graph"

Manifest = dict[str, Any]
Progress = Callable[[str, int, int], None]
"""Called with what is being done, and how many bytes of how many are done."""

_READ_SIZE = 1 << 22

_NEEDED: dict[str, type] = {
    "target.spec": dict,
    "target.tensors": dict,
    "target.weights": str,
    "tokenizer.file": str,
    "files": list,
}


def read_manifest(bundle: Path) -> Manifest:
    """The manifest of a bundle, after the checks that need no other file."""
    path = bundle / MANIFEST
    if not bundle.is_dir():
        raise SapwoodError(f"{bundle}: there is no such bundle")
    try:
        manifest = json.loads(path.read_text(encoding="utf-8"))
    except FileNotFoundError:
        raise SapwoodError(f"{bundle}: not a bundle: it has no {MANIFEST}") from None
    except (OSError, UnicodeDecodeError, json.JSONDecodeError, RecursionError) as error:
        raise SapwoodError(f"{path}: cannot be read: {error}") from None
    version = manifest.get("schema_version") if isinstance(manifest, dict) else None
    if not isinstance(version, int) or isinstance(version, bool) or version < 1:
        raise SapwoodError(f"{path}: no valid schema_version; export the model again")
    if version > SCHEMA_VERSION:
        raise SapwoodError(
            f"{path}: schema version {version} is newer than this Sapwood, which reads up to "
            f"{SCHEMA_VERSION}; update Sapwood"
        )
    for keys, kind in _NEEDED.items():
        value: Any = manifest
        for key in keys.split("."):
            value = value.get(key) if isinstance(value, dict) else None
        if not isinstance(value, kind):
            what = "is missing" if value is None else f"is {value!r}, which it cannot be"
            raise SapwoodError(f"{path}: '{keys}' {what}; export the model again")
    result: Manifest = manifest
    return result


def read_spec(bundle: Path) -> ModelSpec:
    """The target's spec."""
    return ModelSpec.from_manifest(read_manifest(bundle)["target"]["spec"])


def verify_bundle(bundle: Path, progress: Progress | None = None) -> Manifest:
    """Checks every file's size and checksum and every tensor's place; returns the manifest."""
    manifest = read_manifest(bundle)
    entries = [_file_entry(bundle, entry) for entry in manifest["files"]]
    total, done = sum(size for _, size, _ in entries), 0
    for name, size, expected in entries:
        path = bundle / name
        if not path.is_file():
            raise SapwoodError(f"{path}: the file is missing; export the model again")
        if path.stat().st_size != size:
            raise SapwoodError(
                f"{path}: {path.stat().st_size} bytes, the manifest says {size}: truncated or "
                "changed; export the model again"
            )
        digest = hashlib.sha256()
        with path.open("rb") as file:
            while block := file.read(_READ_SIZE):
                digest.update(block)
                done += len(block)
                if progress is not None:
                    progress("checking", done, total)
        if digest.hexdigest() != expected:
            raise SapwoodError(
                f"{path}: the checksum does not match the manifest: the file was changed or "
                "damaged; export the model again"
            )
    spec = ModelSpec.from_manifest(manifest["target"]["spec"])
    _check_drafters(bundle, manifest.get("drafters"), spec)
    listed = {name for name, _, _ in entries}
    for needed in (manifest["target"]["weights"], manifest["tokenizer"]["file"]):
        if needed not in listed:
            raise SapwoodError(f"{bundle}: '{needed}' is not in the manifest's list of files")
    weights_size = (bundle / manifest["target"]["weights"]).stat().st_size
    for name, entry in manifest["target"]["tensors"].items():
        _check_tensor(bundle, name, entry, weights_size)
    return manifest


def read_dequantized(bundle: Path, name: str) -> NDArray[np.float32]:
    """One tensor as float32 in the manifest's shape, with the values the runtime computes with."""
    return _dequantize(bundle, read_manifest(bundle), name)


def load_bundle_weights(bundle: Path) -> dict[str, NDArray[np.float32]]:
    """All tensors as float32, by name. Takes four bytes a weight."""
    manifest = read_manifest(bundle)
    return {name: _dequantize(bundle, manifest, name) for name in manifest["target"]["tensors"]}


def _dequantize(bundle: Path, manifest: Mapping[str, Any], name: str) -> NDArray[np.float32]:
    entry = manifest["target"]["tensors"].get(name)
    if entry is None:
        raise SapwoodError(f"{bundle}: the bundle has no tensor '{name}'")
    path = bundle / manifest["target"]["weights"]
    if not path.is_file():
        raise SapwoodError(f"{path}: the file is missing; export the model again")
    return dequantized_entry(path, name, entry)


def dequantized_entry(weights: Path, name: str, entry: Any) -> NDArray[np.float32]:
    """A tensor of a weights file by its manifest entry, after the entry is checked."""
    _check_tensor(weights.parent, name, entry, weights.stat().st_size)
    raw = np.fromfile(weights, dtype=np.uint8, count=entry["bytes"], offset=entry["offset"])
    if entry["format"] == "float32":
        plain: NDArray[np.float32] = raw.view("<f4").reshape(entry["shape"]).astype(np.float32)
        return plain
    form = linear_format(entry["format"])
    outputs, inputs = entry["shape"]
    return unpack(form, raw, outputs, inputs).dequantize(form)


def _file_entry(bundle: Path, entry: Any) -> tuple[str, int, str]:
    """Name, size and checksum of an entry of ``files``; the name stays inside the bundle."""
    values = entry if isinstance(entry, dict) else {}
    name, size, checksum = values.get("name"), values.get("bytes"), values.get("sha256")
    if not (isinstance(name, str) and isinstance(size, int) and isinstance(checksum, str)):
        raise SapwoodError(f"{bundle}: the manifest's list of files is damaged: {entry!r}")
    plain = name.isprintable() and not set(name) & set("/\\:") and len(name.encode()) <= 255
    if not plain or name in ("", ".", "..", MANIFEST):
        raise SapwoodError(f"{bundle}: the manifest lists '{name}', which is outside the bundle")
    return name, size, checksum


def check_early_exit(layers: Any, of_layers: int) -> int:
    """How many of the target's layers an early exit runs: 1 or more, and fewer than all."""
    if type(layers) is not int or not 1 <= layers < of_layers:
        raise SapwoodError(
            f"an early exit after {layers!r} layers is not possible: this model has {of_layers}, "
            f"so give 1 to {of_layers - 1}"
        )
    return layers


def _check_drafters(bundle: Path, drafters: Any, spec: ModelSpec) -> None:
    entries = drafters if isinstance(drafters, list) else [drafters]
    exits = [entry for entry in entries if _kind(entry) == EARLY_EXIT]
    if any(_kind(entry) is None for entry in entries) or len(exits) > 1:
        raise SapwoodError(f"{bundle}: the manifest's list of drafters is damaged: {drafters!r}")
    for entry in exits:
        check_early_exit(entry.get("layers"), spec.layers)


def _kind(entry: Any) -> str | None:
    kind = entry.get("kind") if isinstance(entry, dict) else None
    return kind if isinstance(kind, str) else None


def _check_tensor(bundle: Path, name: str, entry: Any, weights_size: int) -> None:
    values = entry if isinstance(entry, dict) else {}
    shape, offset, size = values.get("shape"), values.get("offset"), values.get("bytes")
    positive = isinstance(shape, list) and all(isinstance(n, int) and n > 0 for n in shape)
    if not (positive and isinstance(offset, int) and isinstance(size, int)):
        raise SapwoodError(f"{bundle}: the manifest's entry for tensor '{name}' is damaged")
    assert isinstance(shape, list)
    format_name = str(values.get("format"))
    if format_name == "float32":
        expected = 4 * int(np.prod(shape, dtype=object))
    else:
        form = linear_format(format_name)
        if len(shape) != 2 or shape[1] % form.group:
            raise SapwoodError(f"{bundle}: tensor '{name}' cannot have the shape {shape}")
        expected = packed_bytes(form, shape[0], shape[1])
    if size != expected:
        raise SapwoodError(
            f"{bundle}: tensor '{name}' has {size} bytes in the manifest, its shape needs "
            f"{expected}"
        )
    if offset < 0 or offset % ALIGNMENT or offset + size > weights_size:
        raise SapwoodError(
            f"{bundle}: tensor '{name}' lies outside the weights file or is unaligned: "
            f"bytes {offset} to {offset + size} of {weights_size}"
        )
