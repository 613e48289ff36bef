"""The unfused graph: standard ONNX operators, every weight a graph input.

The layers of a decoder differ in their weights only, so one is traced and copied as often as the
spec says; tracing thirty would take minutes for the same graph. Weights are inputs while the graph
is worked on, so that no step holds, copies or folds hundreds of megabytes; ``weights.py`` turns
them into initialisers at the end.
"""

from __future__ import annotations

import logging
import warnings
from collections.abc import Mapping, Sequence
from contextlib import contextmanager
from typing import Any

import onnx_ir as ir
import torch
from torch import Tensor, nn

from sapwood_export.models import decoder
from sapwood_export.models.decoder import Pass
from sapwood_export.spec import ModelSpec

OPSET = 20  # the first with Gelu

# Symbolic dimensions of the graph, as they are named in it.
ROWS, CONTEXT, PATHS, OUTPUTS, SLOTS, VISIBLE = (
    "rows",
    "context",
    "paths",
    "outputs",
    "slots",
    "visible",
)
PASS_INPUTS: dict[str, tuple[str | int, ...]] = {
    "token_ids": (ROWS,),
    "positions": (ROWS,),
    "slots": (ROWS,),
    "context_slots": (CONTEXT,),
    "path_slots": (PATHS,),
    "path_ranges": (ROWS, 2),
    "output_rows": (OUTPUTS,),
}

# Sizes of the example tensors; all different, so that no two dimensions are taken for one.
_EXAMPLE = {ROWS: 5, CONTEXT: 7, PATHS: 11, OUTPUTS: 3, SLOTS: 48, VISIBLE: 18}


def weight_shapes(spec: ModelSpec) -> dict[str, tuple[int, ...]]:
    """Every weight of the decoder by its name in the manifest, with its shape."""
    shapes: dict[str, tuple[int, ...]] = {
        "embedding": (spec.vocabulary_size, spec.hidden_size),
        "rope.global": (spec.head_dim // 2,),
        "final_norm": (spec.hidden_size,),
    }
    if any(spec.layer_is_sliding):
        shapes["rope.local"] = (spec.head_dim // 2,)
    if not spec.tied_head:
        shapes["head"] = (spec.vocabulary_size, spec.hidden_size)
    for layer in range(spec.layers):
        for name, shape in layer_weight_shapes(spec).items():
            shapes[f"layers.{layer}.{name}"] = shape
    return shapes


def layer_weight_shapes(spec: ModelSpec) -> dict[str, tuple[int, ...]]:
    """The weights of one layer, without ``layers.i.`` in front of their names."""
    hidden, head_dim, intermediate = spec.hidden_size, spec.head_dim, spec.intermediate_size
    shapes: dict[str, tuple[int, ...]] = {
        "attention_norm": (hidden,),
        "qkv": (spec.qkv_outputs, hidden),
        "output": (hidden, spec.heads * head_dim),
        "mlp_norm": (hidden,),
        "gate_up": (2 * intermediate, hidden),
        "down": (hidden, intermediate),
    }
    if spec.qkv_bias:
        shapes["qkv_bias"] = (spec.qkv_outputs,)
    if spec.qk_norm:
        shapes |= {"q_norm": (head_dim,), "k_norm": (head_dim,)}
    if spec.post_norms:
        shapes |= {"attention_post_norm": (hidden,), "mlp_post_norm": (hidden,)}
    return shapes


def unfused_graph(spec: ModelSpec) -> ir.Model:
    """The decoder's graph of standard operators, with the pass, caches and weights as inputs.

    Inputs: the seven of a pass (int32), ``past_keys.i`` and ``past_values.i`` (float32 [kv_heads,
    slots, head_dim]), then the weights by name. Outputs: ``logits`` [outputs, vocabulary],
    ``present_keys.i``, ``present_values.i``.
    """
    graph = _Stitched(spec.family)
    values = {
        name: graph.add_input(name, ir.DataType.INT32, shape) for name, shape in PASS_INPUTS.items()
    }
    cache_shape = (spec.kv_heads, SLOTS, spec.head_dim)
    for layer in range(spec.layers):
        for kind in ("past_keys", "past_values"):
            name = f"{kind}.{layer}"
            values[name] = graph.add_input(name, ir.DataType.FLOAT, cache_shape)
    for name, shape in weight_shapes(spec).items():
        values[name] = graph.add_input(name, ir.DataType.FLOAT, shape)

    shared = graph.add_piece("prepare/", _trace(_Prepare(spec)), values)
    hidden = shared["hidden"]
    layer_piece = _trace(_Layer(spec))
    present: dict[str, ir.Value] = {}
    for layer, sliding in enumerate(spec.layer_is_sliding):
        layer_values = {
            "hidden": hidden,
            "rotary": shared["rotary_local" if sliding else "rotary"],
            "visible": shared["visible_window" if sliding else "visible"],
            "gathered_slots": shared["gathered_slots"],
            "slots": values["slots"],
            "past_keys": values[f"past_keys.{layer}"],
            "past_values": values[f"past_values.{layer}"],
        }
        for name in layer_weight_shapes(spec):
            layer_values[name] = values[f"layers.{layer}.{name}"]
        results = graph.add_piece(f"layers.{layer}/", layer_piece, layer_values)
        hidden = results["hidden"]
        present[f"present_keys.{layer}"] = results["present_keys"]
        present[f"present_values.{layer}"] = results["present_values"]
    head = graph.add_piece("head/", _trace(_Head(spec)), values | {"hidden": hidden})
    graph.add_output("logits", head["logits"])
    for name, value in present.items():
        graph.add_output(name, value)
    return graph.model()


class _Piece(nn.Module):
    """A part of the decoder that is traced on its own, with named inputs and outputs."""

    inputs: dict[str, tuple[torch.dtype, tuple[str | int, ...]]]
    outputs: list[str]

    def compute(self, values: Mapping[str, Tensor]) -> Sequence[Tensor]:
        raise NotImplementedError

    def forward(self, values: dict[str, Tensor]) -> tuple[Tensor, ...]:
        return tuple(self.compute(values))


class _Prepare(_Piece):
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


class _Layer(_Piece):
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


class _Head(_Piece):
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


def _trace(piece: _Piece) -> ir.Model:
    """Exports one piece; its graph's inputs and outputs carry the piece's names."""
    values = {
        name: torch.zeros(
            [_EXAMPLE[size] if isinstance(size, str) else size for size in shape], dtype=dtype
        )
        for name, (dtype, shape) in piece.inputs.items()
    }
    dynamic = {
        name: {
            axis: torch.export.Dim(size) for axis, size in enumerate(shape) if isinstance(size, str)
        }
        for name, (_, shape) in piece.inputs.items()
    }
    with _quiet():
        program = torch.onnx.export(
            piece.eval(),
            (),
            kwargs={"values": values},
            dynamic_shapes={"values": dynamic},
            opset_version=OPSET,
            dynamo=True,
            verbose=False,
        )
    assert program is not None
    model: ir.Model = program.model
    for value, name in zip(model.graph.inputs, piece.inputs, strict=True):
        value.name = name
    for value, name in zip(model.graph.outputs, piece.outputs, strict=True):
        value.name = name
    return model


@contextmanager
def _quiet() -> Any:
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


class _Stitched:
    """A graph put together from traced pieces."""

    def __init__(self, name: str) -> None:
        self._graph = ir.Graph([], [], nodes=[], opset_imports={"": OPSET}, name=name)

    def add_input(self, name: str, dtype: ir.DataType, shape: Sequence[str | int]) -> ir.Value:
        value = ir.Value(name=name, type=ir.TensorType(dtype), shape=ir.Shape(shape))
        self._graph.inputs.append(value)
        return value

    def add_output(self, name: str, value: ir.Value) -> None:
        value.name = name
        self._graph.outputs.append(value)

    def add_piece(
        self, prefix: str, piece: ir.Model, inputs: Mapping[str, ir.Value]
    ) -> dict[str, ir.Value]:
        """Copies a piece's nodes, its inputs taken by name. Returns its outputs by name."""
        copies: dict[ir.Value, ir.Value] = {}
        for value in piece.graph.inputs:
            assert value.name is not None
            copies[value] = inputs[value.name]
        for value in piece.graph.initializers.values():
            constant = ir.Value(
                name=self._unique(f"{prefix}{value.name}"),
                type=value.type,
                shape=value.shape,
                const_value=value.const_value,
            )
            self._graph.register_initializer(constant)
            copies[value] = constant
        for node in piece.graph:
            outputs = []
            for value in node.outputs:
                copy = ir.Value(name=f"{prefix}{value.name}", type=value.type, shape=value.shape)
                copies[value] = copy
                outputs.append(copy)
            self._graph.append(
                ir.Node(
                    node.domain,
                    node.op_type,
                    [None if value is None else copies[value] for value in node.inputs],
                    list(node.attributes.values()),
                    outputs=outputs,
                    name=f"{prefix}{node.name}",
                )
            )
        return {str(value.name): copies[value] for value in piece.graph.outputs}

    def _unique(self, name: str) -> str:
        taken = self._graph.initializers
        if name not in taken:
            return name
        return self._unique(name + "_")

    def model(self) -> ir.Model:
        return ir.Model(self._graph, ir_version=10, producer_name="sapwood")
