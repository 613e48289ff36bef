"""Programs for ExecuTorch that tests make: tiny bundles with one, and single operators."""

from __future__ import annotations

import functools
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

import pytest
import torch
from executorch.exir import EdgeCompileConfig, to_edge
from torch import Tensor, nn

from graph_tools import tiny_bundle
from sapwood import hosts
from sapwood_export.bundle import read_manifest
from sapwood_export.bundle_writer import add_extra_files
from sapwood_export.executorch import operators  # noqa: F401  (registers the out variants)
from sapwood_export.executorch.command import VERSION_METHOD, export_executorch

needs_host = pytest.mark.skipif(
    hosts.executorch_status() is not None, reason=str(hosts.executorch_status())
)
_FOLDER = tempfile.TemporaryDirectory(prefix="sapwood-executorch-")


def program_bundle(family: str, flavour: str = "fused") -> Path:
    """A small random model's bundle with a ``target.pte``, made once a test run."""
    return _made(family, flavour)


@functools.cache
def _made(family: str, flavour: str) -> Path:
    folder = Path(_FOLDER.name) / f"{family}-{flavour}"
    add_program(tiny_bundle(family), folder, flavour)
    return folder


def add_program(bundle: Path, folder: Path, flavour: str) -> None:
    """Copies a bundle to ``folder`` without its graphs, and puts a ``target.pte`` there."""
    graphs = (".onnx", ".pte")
    shutil.copytree(bundle, folder, ignore=shutil.ignore_patterns(*(f"*{end}" for end in graphs)))
    manifest = read_manifest(folder)
    manifest["target"].pop("onnx", None)
    for listed, name in (("files", "name"), ("drafters", "file")):
        kept = [entry for entry in manifest[listed] if not entry.get(name, "").endswith(graphs)]
        manifest[listed] = kept
    export_executorch(folder, flavour)
    add_extra_files(folder, manifest, flavour)


class _Call(nn.Module):
    def __init__(self, function: Callable[..., tuple[Tensor, ...]]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *inputs: Tensor) -> tuple[Tensor, ...]:
        return self.function(*inputs)


def operator_program(
    function: Callable[..., tuple[Tensor, ...]], *inputs: Tensor, version: int | None = None
) -> bytes:
    """The .pte file of a function of tensors of these sizes; ``version``: of our operators."""
    with torch.no_grad():
        exported = torch.export.export(_Call(function), inputs, strict=False)
        edge = to_edge(
            exported,
            compile_config=EdgeCompileConfig(_check_ir_validity=False),
            constant_methods={} if version is None else {VERSION_METHOD: version},
        )
        return bytes(edge.to_executorch().buffer)
