"""A bundle's decoder whose linear layers are XNNPACK's.

Ours are the embedding, which reads the bundle's table, norms, rotation and tree attention, for
which XNNPACK has no operators. Inputs are those of ``decoder.py``. The linears' weights lie in the
program, so it weighs as much as the bundle's.
"""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from sapwood_export.executorch.decoder import MOST_ROWS, BundleModule
from sapwood_export.executorch.operators import operators
from sapwood_export.executorch.xnnpack_linear import XnnpackLinear, xnnpack_linear
from sapwood_export.executorch.xnnpack_parts import GatedMlp, Lowering, Projection
from sapwood_export.operators.layer import LINEARS
from sapwood_export.spec import PANEL


class XnnpackDecoder(BundleModule):
    """Every linear layer XNNPACK's."""

    def __init__(self, bundle: Path) -> None:
        super().__init__(bundle)
        spec = self.spec
        for name in self.entries:
            if not name.endswith((*LINEARS, "qkv_bias")):
                self.add(name)
        self.lowering = Lowering(MOST_ROWS)
        self.blocks = nn.ModuleList(_Block(self, layer) for layer in range(spec.layers))

    def linear(
        self, name: str, rows: NDArray[np.int64] | None = None, bias: Tensor | None = None
    ) -> XnnpackLinear:
        """The layer of one of the bundle's matrices."""
        # The large multipliers of Gemma's norms raise a few inputs far above the others. With int8
        # inputs Gemma 3 270M is 0.044 nats from its weights' float32, with float32 ones 0.011.
        float_inputs = self.spec.post_norms
        return xnnpack_linear(self.weights, self.entries[name], bias, rows, float_inputs)

    def normed(self, x: Tensor, name: str) -> Tensor:
        """x normed by the weight of that name."""
        result: Tensor = operators().rms_norm(x, self.tensor(name), self.spec.norm_epsilon)
        return result

    def layer(self, layer: int, hidden: Tensor, rotary: Tensor, seen: tuple[Tensor, ...]) -> Tensor:
        result: Tensor = self.blocks[layer](self, hidden, rotary, seen)
        return result


class _Block(nn.Module):
    """The linears of one layer; the norms are the decoder's own."""

    def __init__(self, decoder: XnnpackDecoder, layer: int) -> None:
        super().__init__()
        spec = decoder.spec
        self.prefix = prefix = f"layers.{layer}."
        self.window = spec.sliding_window if spec.layer_is_sliding[layer] else 0
        bias = None
        if spec.qkv_bias:
            bias = decoder.stored(prefix + "qkv_bias")
        # Panels of 16 gates and 16 ups in turn: all gates first, then all ups.
        panels = np.arange(2 * spec.intermediate_size).reshape(-1, 2, PANEL)
        gate, up = (
            decoder.linear(prefix + "gate_up", rows=panels[:, half].reshape(-1)) for half in (0, 1)
        )
        down = decoder.linear(prefix + "down")
        residual = not spec.post_norms  # else a norm stands between
        lower = decoder.lowering.lower
        self.qkv = lower(Projection(decoder.linear(prefix + "qkv", bias=bias)))
        self.output = lower(Projection(decoder.linear(prefix + "output"), residual))
        self.mlp = lower(GatedMlp(gate, up, down, spec.activation, residual))

    def forward(
        self, decoder: XnnpackDecoder, hidden: Tensor, rotary: Tensor, seen: tuple[Tensor, ...]
    ) -> Tensor:
        spec, prefix = decoder.spec, self.prefix
        widths = [count * spec.head_dim for count in (spec.heads, spec.kv_heads, spec.kv_heads)]
        q, k, v = torch.split(
            self.qkv(decoder.normed(hidden, prefix + "attention_norm")), widths, dim=-1
        )
        q = q.reshape(-1, spec.heads, spec.head_dim)
        k = k.reshape(-1, spec.kv_heads, spec.head_dim)
        v = v.reshape(-1, spec.kv_heads, spec.head_dim)
        if spec.qk_norm:
            q, k = decoder.normed(q, prefix + "q_norm"), decoder.normed(k, prefix + "k_norm")
        run = operators()
        q, k = run.rotary_embedding(q, rotary), run.rotary_embedding(k, rotary)
        mixed = run.tree_attention_in_place(q, k, v, *seen, spec.attention_scale, self.window)
        hidden = self.added(decoder, self.output, mixed, hidden, "attention_post_norm")
        x = decoder.normed(hidden, prefix + "mlp_norm")
        return self.added(decoder, self.mlp, x, hidden, "mlp_post_norm")

    def added(
        self, decoder: XnnpackDecoder, part: nn.Module, x: Tensor, hidden: Tensor, norm: str
    ) -> Tensor:
        """hidden plus what the part makes of x."""
        result: Tensor
        if decoder.spec.post_norms:
            result = hidden + decoder.normed(part(x), self.prefix + norm)
        else:
            result = part(x, hidden)
        return result
