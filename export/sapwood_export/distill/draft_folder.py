"""A draft as a folder: a manifest, the packed weights and a card."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from sapwood import __version__
from sapwood.errors import SapwoodError
from sapwood_export.bundle import SCHEMA_VERSION, Manifest, dequantized_entry, read_manifest
from sapwood_export.bundle_writer import (
    file_entry,
    tensor_entries,
    write_manifest,
    write_weights,
)
from sapwood_export.layout import BundleTensor, PackedTensor, PlainTensor
from sapwood_export.quantize.formats import LinearFormat, linear_format
from sapwood_export.sources.base import Rows
from sapwood_export.spec import ModelSpec
from sapwood_export.staging import MANIFEST, staged_folder

DRAFT = "draft"  # the manifest's kind
WEIGHTS = "draft.weights"
CARD = "README.md"

LAYER = "layer."  # in front of the names of the draft layer's tensors

HEAD = "head"
PARALLEL_HEADS = "parallel_heads"
KINDS = (HEAD, PARALLEL_HEADS)

# What a draft layer has of the target's spec; the sizes around it are the target's own.
_SPEC_FIELDS = (
    "intermediate_size",
    "heads",
    "kv_heads",
    "head_dim",
    "norm_epsilon",
    "attention_scale",
    "activation",
    "qkv_bias",
    "qk_norm",
    "post_norms",
)


@dataclass(frozen=True)
class DraftWeights:
    """Everything a draft computes with, in float32, under the manifest's names."""

    kind: str
    feature_layers: tuple[int, ...]
    vocabulary_ids: NDArray[np.int32]  # [subset], ascending
    tensors: Mapping[str, NDArray[np.float32]]  # "head": [subset, h], "uncertainty.w1", ...

    @property
    def uncertainty_units(self) -> int:
        return self.tensors["uncertainty.w1"].shape[0] if "uncertainty.w1" in self.tensors else 0

    @property
    def parallel(self) -> int:
        return sum(name.startswith("parallel.") for name in self.tensors)


@dataclass(frozen=True)
class DraftFormats:
    """How the matrices are packed: those of the layer in four bits; those around it, whose inputs
    differ in size by far more, and the head in eight."""

    layer: str = "int4_g32_min"
    others: str = "int8_g32"

    def of(self, name: str) -> LinearFormat:
        """The format of a tensor by its name."""
        return linear_format(self.layer if name.startswith(LAYER) else self.others)


def write_draft(
    out: Path,
    bundle: Path,
    name: str,
    weights: DraftWeights,
    formats: DraftFormats,
    training: Mapping[str, Any],
    card: str,
    graph: bool = False,
) -> Manifest:
    """Writes the draft folder ``out`` for the target in ``bundle``, whole or not at all.

    A draft that is there already is replaced. ``training`` goes into the manifest as it is.
    ``graph``: with ``draft.onnx`` over the same weights, which needs the packages of that export.
    """
    tensors = draft_tensors(weights, formats)
    with staged_folder(out.absolute(), force=True) as folder:
        files = [write_weights(folder, tensors, None, WEIGHTS)]
        (folder / CARD).write_text(card, encoding="utf-8")
        files.append(file_entry(folder / CARD))
        manifest: Manifest = {
            "schema_version": SCHEMA_VERSION,
            "kind": DRAFT,
            "name": name,
            "sapwood_version": __version__,
            "target": target_identity(bundle),
            "draft": {
                "kind": weights.kind,
                "feature_layers": list(weights.feature_layers),
                "subset": len(weights.vocabulary_ids),
                "spec": _layer_spec(bundle),
                "uncertainty_units": weights.uncertainty_units,
                "parallel": weights.parallel,
                "weights": WEIGHTS,
                "tensors": tensor_entries(tensors),
            },
            "training": dict(training),
            "files": files,
        }
        if graph:
            from sapwood_export.onnx.trained_draft import write_trained_draft_graph

            files.append(file_entry(write_trained_draft_graph(folder, manifest, bundle)))
        write_manifest(folder, manifest)
    return manifest


def read_draft(folder: Path) -> DraftWeights:
    """A draft folder's weights with the values that the runtime computes with."""
    path = folder / MANIFEST
    try:
        draft = json.loads(path.read_text(encoding="utf-8"))["draft"]
        entries = dict(draft["tensors"])
        ids = entries.pop("vocabulary_ids")
        weights = folder / draft["weights"]
        vocabulary_ids = np.fromfile(
            weights, dtype="<i4", count=draft["subset"], offset=ids["offset"]
        )
        return DraftWeights(
            kind=draft["kind"],
            feature_layers=tuple(draft["feature_layers"]),
            vocabulary_ids=vocabulary_ids.astype(np.int32),
            tensors={
                name: dequantized_entry(weights, name, entry) for name, entry in entries.items()
            },
        )
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise SapwoodError(f"{folder}: not a draft, or a damaged one: {error}") from None


def target_identity(bundle: Path) -> dict[str, Any]:
    """What has to agree between a draft and the target it is used with."""
    manifest = read_manifest(bundle)
    spec = ModelSpec.from_manifest(manifest["target"]["spec"])
    tokenizer = manifest["tokenizer"]["file"]
    return {
        "name": manifest["name"],
        "family": spec.family,
        "hidden_size": spec.hidden_size,
        "layers": spec.layers,
        "vocabulary_size": spec.vocabulary_size,
        "tokenizer_sha256": file_entry(bundle / tokenizer)["sha256"],
    }


def draft_tensors(weights: DraftWeights, formats: DraftFormats) -> list[BundleTensor]:
    """The tensors as the weights file holds them, matrices packed."""
    tensors: list[BundleTensor] = [PlainTensor("vocabulary_ids", weights.vocabulary_ids)]
    for name, values in weights.tensors.items():
        if values.ndim == 2 and not name.startswith("uncertainty."):
            tensors.append(_packed(name, values, formats.of(name)))
        else:
            tensors.append(PlainTensor(name, values))
    return tensors


def _layer_spec(bundle: Path) -> dict[str, Any]:
    values = read_manifest(bundle)["target"]["spec"]
    return {name: values[name] for name in _SPEC_FIELDS}


def _packed(name: str, values: NDArray[np.float32], form: LinearFormat) -> PackedTensor:
    if values.shape[1] % form.group:
        raise SapwoodError(
            f"the draft's '{name}' has {values.shape[1]} inputs, not a multiple of the group of "
            f"{form.group} of {form.name}; choose a format with a smaller group"
        )
    rows = np.arange(values.shape[0])
    part_of_row = np.zeros(len(rows), dtype=np.uint8)
    return PackedTensor(name, form, (_Trained(name, values),), part_of_row, rows)


@dataclass(frozen=True)
class _Trained:
    """A trained matrix as a source tensor."""

    name: str
    values: NDArray[np.float32]

    @property
    def shape(self) -> tuple[int, ...]:
        return self.values.shape

    @property
    def format(self) -> str:
        return "F32"

    def read(self, rows: Rows | None = None) -> NDArray[np.float32]:
        return self.values if rows is None else self.values[rows]

    def read_blocks(self, rows: Rows | None = None) -> NDArray[np.uint8] | None:
        return None
