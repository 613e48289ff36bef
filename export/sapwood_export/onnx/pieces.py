"""The parts of a decoder that its graph is put together from, and their one trace by torch.

The layers of a decoder differ in their weights only, so one is traced and copied as often as the
spec says; tracing thirty would take minutes for the same graph. All parts go through one export,
because most of an export's time is spent before it looks at the model.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass

import onnx_ir as ir
import torch
from torch import Tensor, nn

from sapwood.errors import SapwoodError
from sapwood_export.models import decoder
from sapwood_export.models.decoder import Pass
from sapwood_export.onnx.interface import (
    CONTEXT,
    OPSET,
    OUTPUTS,
    PASS_INPUTS,
    PATHS,
    ROWS,
    SLOTS,
    VISIBLE,
    layer_weight_shapes,
    weight_shapes,
)
from sapwood_export.spec import ModelSpec

# Sizes of the example tensors; all different, so that no two dimensions are taken for one.
_EXAMPLE = {ROWS: 5, CONTEXT: 7, PATHS: 11, OUTPUTS: 3, SLOTS: 48, VISIBLE: 18}


class Piece(nn.Module):
    """A part of the decoder that is traced on its own, with named inputs and outputs."""

    inputs: dict[str, tuple[torch.dtype, tuple[str | int, ...]]]
    outputs: list[str]

    def compute(self, values: Mapping[str, Tensor]) -> Sequence[Tensor]:
        raise NotImplementedError


class Prepare(Piece):
    """Embedding, rotary tables and the masks."""

    def __init__(self, spec: ModelSpec) -> None:
        super().__init__()
        self.spec = spec
        shapes = weight_shapes(spec)
        self.slides = any(spec.layer_is_sliding)
        self.inputs = {
            name: (torch.int32, shape)
            for name, shape in PASS_INPUTS.items()
            if name not in ("slots", "output_rows")
        }
        for name in ("embedding", "rope.global", "rope.local"):
            if name in shapes:
                self.inputs[name] = (torch.float32, shapes[name])
        self.outputs = ["hidden", "gathered_slots", "visible", "rotary"]
        if self.slides:
            self.outputs += ["visible_window", "rotary_local"]

    def compute(self, values: Mapping[str, Tensor]) -> Sequence[Tensor]:
        unused = values["token_ids"]
        batch = Pass(
            values["token_ids"],
            values["positions"],
            unused,
            values["context_slots"],
            values["path_slots"],
            values["path_ranges"],
            unused,
        )
        hidden, shared = decoder.prepare(self.spec, values, batch)
        return (hidden, *shared) if self.slides else (hidden, *shared[:3])


class Layer(Piece):
    """One decoder layer; whether it slides is in the mask and rotary table that it is given."""

    def __init__(self, spec: ModelSpec) -> None:
        super().__init__()
        self.spec = spec
        cache = (spec.kv_heads, SLOTS, spec.head_dim)
        self.inputs = {
            "hidden": (torch.float32, (ROWS, spec.hidden_size)),
            "rotary": (torch.float32, (ROWS, spec.head_dim)),
            "visible": (torch.bool, (ROWS, VISIBLE)),
            "gathered_slots": (torch.int64, (VISIBLE,)),
            "slots": (torch.int32, (ROWS,)),
            "past_keys": (torch.float32, cache),
            "past_values": (torch.float32, cache),
        }
        for name, shape in layer_weight_shapes(spec).items():
            self.inputs[name] = (torch.float32, shape)
        self.outputs = ["hidden", "present_keys", "present_values"]

    def compute(self, values: Mapping[str, Tensor]) -> Sequence[Tensor]:
        return decoder.decoder_layer(
            self.spec,
            values,
            values["hidden"],
            values["rotary"],
            values["visible"],
            values["gathered_slots"],
            values["slots"],
            values["past_keys"],
            values["past_values"],
        )


class Head(Piece):
    """Final norm and logits of the rows asked for."""

    def __init__(self, spec: ModelSpec) -> None:
        super().__init__()
        self.spec = spec
        shapes = weight_shapes(spec)
        head = "embedding" if spec.tied_head else "head"
        self.inputs = {
            "hidden": (torch.float32, (ROWS, spec.hidden_size)),
            "output_rows": (torch.int32, (OUTPUTS,)),
            "final_norm": (torch.float32, shapes["final_norm"]),
            head: (torch.float32, shapes[head]),
        }
        self.outputs = ["logits"]

    def compute(self, values: Mapping[str, Tensor]) -> Sequence[Tensor]:
        return [decoder.output_head(self.spec, values, values["hidden"], values["output_rows"])]


@dataclass(frozen=True)
class TracedPiece:
    """A part's nodes, in order, between its named inputs and outputs."""

    inputs: dict[str, ir.Value]
    outputs: dict[str, ir.Value]
    nodes: list[ir.Node]


def trace(pieces: Mapping[str, Piece]) -> dict[str, TracedPiece]:
    """Exports the pieces side by side in one graph, and takes them apart again."""
    values = {
        key: {name: _example(dtype, shape) for name, (dtype, shape) in piece.inputs.items()}
        for key, piece in pieces.items()
    }
    dynamic = {
        key: {
            name: {
                axis: torch.export.Dim(_own(key, size))
                for axis, size in enumerate(shape)
                if isinstance(size, str)
            }
            for name, (_, shape) in piece.inputs.items()
        }
        for key, piece in pieces.items()
    }
    try:
        with _quiet():
            program = torch.onnx.export(
                _SideBySide(pieces).eval(),
                (),
                kwargs={"values": values},
                dynamic_shapes={"values": dynamic},
                opset_version=OPSET,
                dynamo=True,
                verbose=False,
            )
    except torch.onnx.OnnxExporterError as error:
        reason = str(error.__cause__ or error).strip().splitlines()[0]
        raise SapwoodError(
            f"ONNX export: torch {torch.__version__} cannot trace the decoder ({reason}); "
            "install the version that sapwood[onnx] asks for"
        ) from error
    assert program is not None
    graph: ir.Graph = program.model.graph
    inputs, outputs = iter(graph.inputs), iter(graph.outputs)
    traced = {}
    for key, piece in pieces.items():
        own_inputs = {name: next(inputs) for name in piece.inputs}
        own_outputs = {name: next(outputs) for name in piece.outputs}
        needed = _ancestors(own_outputs.values())
        nodes = [node for node in graph if node in needed]
        for node in nodes:
            for value in node.outputs:
                value.shape = _without_piece(key, value.shape)
        traced[key] = TracedPiece(own_inputs, own_outputs, nodes)
    return traced


class _SideBySide(nn.Module):
    """Several pieces as one module, each with its own inputs and outputs."""

    def __init__(self, pieces: Mapping[str, Piece]) -> None:
        super().__init__()
        self.pieces = nn.ModuleDict(pieces)

    def forward(self, values: dict[str, dict[str, Tensor]]) -> tuple[Tensor, ...]:
        results: list[Tensor] = []
        for key, piece in self.pieces.items():
            assert isinstance(piece, Piece)
            results += piece.compute(values[key])
        return tuple(results)


def _example(dtype: torch.dtype, shape: tuple[str | int, ...]) -> Tensor:
    """An input to trace with. A weight is one zero under every index: it takes no memory."""
    if any(isinstance(size, str) for size in shape):
        return torch.zeros([_EXAMPLE[n] if isinstance(n, str) else n for n in shape], dtype=dtype)
    return torch.zeros((), dtype=dtype).expand([int(size) for size in shape])


def _own(piece: str, dimension: str) -> str:
    """A piece's own name for a dimension, so that it is never taken from another piece's input."""
    return f"{piece}_{dimension}"


def _without_piece(piece: str, shape: ir.Shape | None) -> ir.Shape | None:
    """The shape with its dimensions' common names again."""
    if shape is None:
        return None
    prefix = _own(piece, "")
    return ir.Shape(
        [size if isinstance(size, int) else str(size.value).replace(prefix, "") for size in shape]
    )


def _ancestors(values: Iterable[ir.Value]) -> set[ir.Node]:
    """Every node that the values depend on."""
    found: set[ir.Node] = set()
    waiting = [value.producer() for value in values]
    while waiting:
        node = waiting.pop()
        if node is not None and node not in found:
            found.add(node)
            waiting += [value.producer() for value in node.inputs if value is not None]
    return found


@contextmanager
def _quiet() -> Iterator[None]:
    """Keeps torch's progress notes and deprecation warnings off a person's terminal."""
    logger = logging.getLogger("torch.onnx")
    level = logger.level
    logger.setLevel(logging.ERROR)
    with warnings.catch_warnings(), torch.no_grad():
        warnings.simplefilter("ignore")
        try:
            yield
        finally:
            logger.setLevel(level)
