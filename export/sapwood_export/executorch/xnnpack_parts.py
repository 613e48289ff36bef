"""The parts of a decoder that XNNPACK computes, lowered one by one.

ExecuTorch's own way, a partitioner over the whole model's graph, takes a minute a layer: it
exports every part that it finds seventeen times, to look for patterns that a decoder has none of.
Here the parts of all layers share one export, as they differ in weights alone, and the model's
graph holds calls of finished parts.
"""

from __future__ import annotations

import copy
import math

import torch
from executorch.backends.xnnpack.xnnpack_preprocess import XnnpackBackend
from executorch.exir import EdgeCompileConfig, to_edge
from executorch.exir.backend.compile_spec_schema import CompileSpec
from executorch.exir.lowered_backend_module import LoweredBackendModule
from torch import Tensor, nn
from torch.export import Dim, ExportedProgram

from sapwood_export.executorch.xnnpack_linear import XnnpackLinear

# gelu(x) = x sigmoid(A x + B x^3), which is its approximation by tanh in other words.
_GELU_A = math.sqrt(8 / math.pi)
_GELU_B = 0.044715 * _GELU_A
# Asks XNNPACK's backend for the one pass over a part that linear layers need.
_SPECS = [CompileSpec("dqlinear_partitioner", b"")]
_EXAMPLE_ROWS = 5


class Part(nn.Module):
    """What takes and gives rows of float32: inputs [R, width] each, output [R, outputs]."""

    def __init__(self, widths: tuple[int, ...], outputs: int) -> None:
        super().__init__()
        self.widths = widths
        self.outputs = outputs


class Projection(Part):
    """A linear layer of x [R, inputs]; with ``residual``, added to a second input [R, outputs]."""

    def __init__(self, linear: XnnpackLinear, residual: bool = False) -> None:
        super().__init__((linear.inputs, linear.outputs)[: 1 + residual], linear.outputs)
        self.linear = linear

    def forward(self, x: Tensor, residual: Tensor | None = None) -> Tensor:
        y: Tensor = self.linear(x)
        return y if residual is None else residual + y


class GatedMlp(Part):
    """down(activation(gate x) * up x) of x [R, hidden]; with ``residual``, added to a second."""

    a: Tensor
    b: Tensor

    def __init__(
        self,
        gate: XnnpackLinear,
        up: XnnpackLinear,
        down: XnnpackLinear,
        activation: str,
        residual: bool,
    ) -> None:
        super().__init__((gate.inputs, down.outputs)[: 1 + residual], down.outputs)
        self.gate, self.up, self.down = gate, up, down
        self.silu = activation == "silu"
        if not self.silu:
            self.register_buffer("a", torch.tensor([_GELU_A]))
            self.register_buffer("b", torch.tensor([_GELU_B]))

    def forward(self, x: Tensor, residual: Tensor | None = None) -> Tensor:
        gate: Tensor = self.gate(x)
        steepness = gate if self.silu else gate * (self.a + self.b * gate * gate)
        y: Tensor = self.down(gate * torch.sigmoid(steepness) * self.up(x))
        return y if residual is None else residual + y


class _Shape(nn.Module):
    """What the model's graph has to know of a part: the shape of what it gives."""

    def __init__(self, outputs: int) -> None:
        super().__init__()
        self.outputs = outputs

    def forward(self, x: Tensor, _residual: Tensor | None = None) -> Tensor:
        return x.new_zeros(x.shape[0], self.outputs)


class Lowering:
    """Lowers parts; those of one structure share an export."""

    def __init__(self, most_rows: int) -> None:
        self._rows = Dim("rows", min=1, max=most_rows)
        self._exported: dict[object, tuple[ExportedProgram, ExportedProgram]] = {}

    def lower(self, part: Part) -> LoweredBackendModule:
        """The part as one call of XNNPACK."""
        weights = dict(part.state_dict())
        shapes = tuple((name, w.shape, w.dtype) for name, w in weights.items())
        structure = type(part), part.widths, shapes
        if structure not in self._exported:
            self._exported[structure] = (
                self._edge(part, part),
                self._edge(_Shape(part.outputs), part),
            )
        program, shape = self._exported[structure]
        program = copy.copy(program)
        program._state_dict = weights
        # It is changed while it is lowered.
        result = XnnpackBackend.preprocess(copy.deepcopy(program), _SPECS)
        lowered = LoweredBackendModule(
            shape, XnnpackBackend.__name__, result.processed_bytes, _SPECS, result.data_store_output
        )
        lowered.meta = {"debug_handle_map": result.debug_handle_map}
        return lowered

    def _edge(self, module: nn.Module, part: Part) -> ExportedProgram:
        exported = torch.export.export(
            module,
            tuple(torch.zeros(_EXAMPLE_ROWS, width) for width in part.widths),
            dynamic_shapes=({0: self._rows},) * len(part.widths),
            strict=False,
        )
        config = EdgeCompileConfig(
            _check_ir_validity=False,
            _skip_dim_order=True,
            preserve_ops=[torch.ops.aten.linear.default],
        )
        program: ExportedProgram = to_edge(exported, compile_config=config).exported_program()
        return program
