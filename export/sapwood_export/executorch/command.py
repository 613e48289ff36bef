"""Adds a program for ExecuTorch to a bundle: export, lower, write."""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import torch
from executorch.exir import EdgeCompileConfig, ExecutorchBackendConfig, to_edge
from executorch.exir.passes import MemoryPlanningPass

from sapwood_export.bundle import EXECUTORCH_PROGRAM, Progress
from sapwood_export.bundle_writer import OPERATOR_VERSION
from sapwood_export.executorch.decoder import (
    BundleModule,
    FusedDecoder,
    dynamic_shapes,
    example_inputs,
)
from sapwood_export.executorch.xnnpack_decoder import XnnpackDecoder
from sapwood_export.steps import Steps

VERSION_METHOD = "sapwood_operator_version"  # runtime_cpp/src/operators/executorch/program.cc


def export_executorch(bundle: Path, flavour: str, progress: Progress | None = None) -> None:
    """Writes ``target.pte`` beside a bundle's weights.

    A ``fused`` program names the bundle's tensors and holds none of their bytes; the host finds
    them in ``target.weights``. In one for ``xnnpack`` that holds for the embedding and the norms.
    The caller lists the new file in the manifest.
    """
    steps = Steps(progress, 2)
    decoder = FusedDecoder if flavour == "fused" else XnnpackDecoder
    with _quiet():
        module = steps.run("reading the layers", lambda: decoder(bundle))
        program = steps.run("lowering to ExecuTorch", lambda: lower(module))
    (bundle / EXECUTORCH_PROGRAM).write_bytes(program)


def lower(module: BundleModule) -> bytes:
    """The .pte file of a decoder.

    Inputs and output have no memory in the program: the host binds its own, the cache above all.
    """
    with torch.no_grad():
        exported = torch.export.export(
            module,
            example_inputs(module.spec),
            dynamic_shapes=dynamic_shapes(module.spec),
            strict=False,
        )
        lowered = to_edge(
            exported,
            # The verifier knows no operators but torch's own.
            compile_config=EdgeCompileConfig(_check_ir_validity=False),
            constant_methods={VERSION_METHOD: OPERATOR_VERSION},
        ).to_executorch(
            ExecutorchBackendConfig(
                external_constants=True,
                memory_planning_pass=MemoryPlanningPass(
                    alloc_graph_input=False, alloc_graph_output=False
                ),
            )
        )
    return bytes(lowered.buffer)


@contextmanager
def _quiet() -> Iterator[None]:
    """Keeps warnings about torch's and ExecuTorch's own code off the terminal."""
    level = logging.root.manager.disable
    logging.disable(logging.WARNING)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            yield
    finally:
        logging.disable(level)
