"""Programs for ExecuTorch that tests make: tiny bundles with one, and single operators."""

from __future__ import annotations

import functools
import shutil
import tempfile
from collections.abc import Callable
from pathlib import Path

import torch
from executorch.exir import EdgeCompileConfig, to_edge
from torch import Tensor, nn

from graph_tools import tiny_bundle
from sapwood_export.bundle import read_manifest
from sapwood_export.bundle_writer import add_extra_files
from sapwood_export.executorch import operators  # noqa: F401  (registers the out variants)
from sapwood_export.executorch.command import export_executorch

_FOLDER = tempfile.TemporaryDirectory(prefix="sapwood-executorch-")


def program_bundle(family: str, flavour: str = "fused") -> Path:
    """A small random model's bundle with a ``target.pte``, made once a test run."""
    return _made(family, flavour)


@functools.cache
def _made(family: str, flavour: str) -> Path:
    folder = Path(_FOLDER.name) / f"{family}-{flavour}"
    shutil.copytree(tiny_bundle(family), folder)
    export_executorch(folder, flavour)
    add_extra_files(folder, read_manifest(folder), flavour)
    return folder


class _Call(nn.Module):
    def __init__(self, function: Callable[..., tuple[Tensor, ...]]) -> None:
        super().__init__()
        self.function = function

    def forward(self, *inputs: Tensor) -> tuple[Tensor, ...]:
        return self.function(*inputs)


def operator_program(function: Callable[..., tuple[Tensor, ...]], *inputs: Tensor) -> bytes:
    """The .pte file of a function of tensors of these sizes."""
    with torch.no_grad():
        exported = torch.export.export(_Call(function), inputs, strict=False)
        edge = to_edge(exported, compile_config=EdgeCompileConfig(_check_ir_validity=False))
        return bytes(edge.to_executorch().buffer)
