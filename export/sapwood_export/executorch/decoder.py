"""A bundle's decoder as a module that ``torch.export`` takes: the fused flavour.

Its weights are the bundle's own bytes, named as in the manifest, so that the program can refer to
them by name and the file need hold none. Inputs and their order are the contract with
runtime_cpp/src/operators/executorch/program.h: the seven of a pass, all int32, then every layer's
keys, then every layer's values, float16 in the cache's own layout.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import torch
from torch import Tensor, nn

from sapwood_export.bundle import read_manifest
from sapwood_export.executorch.operators import operators
from sapwood_export.models.decoder import Pass
from sapwood_export.operators.layer import layer_arguments
from sapwood_export.operators.reference import KEY_TILE
from sapwood_export.spec import ModelSpec

MOST_ROWS = 256  # of a pass: what the memory planned for a program is made for
MOST_CONTEXT = 1 << 18  # slots of a cache
MOST_PATHS = 1 << 22  # slots of all rows' paths together


def constant_name(tensor: str) -> str:
    """What a program calls a tensor: ``rope.global`` by itself would be no name in Python."""
    return f"{tensor}_"


class BundleModule(nn.Module):
    """A module over a bundle, whose buffers are its tensors: packed bytes, or float32."""

    def __init__(self, bundle: Path) -> None:
        super().__init__()
        manifest = read_manifest(bundle)
        self.spec = ModelSpec.from_manifest(manifest["target"]["spec"])
        self.entries: dict[str, Any] = manifest["target"]["tensors"]
        self.weights = bundle / manifest["target"]["weights"]
        # Copy on write, because torch wants memory that it could write to.
        self._bytes = np.memmap(self.weights, dtype=np.uint8, mode="c")

    def add(self, name: str) -> None:
        """Makes a tensor of the bundle a buffer, whose name the program keeps."""
        *folders, last = constant_name(name).split(".")
        holder: nn.Module = self
        for folder in folders:
            if not hasattr(holder, folder):
                holder.add_module(folder, nn.Module())
            holder = getattr(holder, folder)
        holder.register_buffer(last, self.stored(name))

    def stored(self, name: str) -> Tensor:
        """A tensor as it lies in the file: packed bytes, or float32."""
        entry = self.entries[name]
        raw = self._bytes[entry["offset"] : entry["offset"] + entry["bytes"]]
        return torch.from_numpy(raw.view("<f4") if entry["format"] == "float32" else raw)

    def tensor(self, name: str) -> Tensor:
        """The buffer that ``add`` made."""
        return self.get_buffer(constant_name(name))

    def form(self, name: str) -> str:
        """The packed format of a tensor."""
        return str(self.entries[name]["format"])

    def embed(self, token_ids: Tensor) -> Tensor:
        """hidden [R, hidden_size] of the tokens."""
        spec = self.spec
        hidden: Tensor = operators().token_embedding(
            token_ids,
            self.tensor("embedding"),
            self.form("embedding"),
            spec.hidden_size,
            spec.vocabulary_size,
            spec.embedding_scale,
        )
        return hidden

    def logits(self, hidden: Tensor, output_rows: Tensor) -> Tensor:
        """Logits [O, vocabulary_size] of rows of hidden [R, hidden_size]."""
        spec = self.spec
        head = "embedding" if spec.tied_head else "head"
        result: Tensor = operators().output_head(
            hidden,
            output_rows,
            self.tensor("final_norm"),
            self.tensor(head),
            self.form(head),
            spec.norm_epsilon,
            spec.vocabulary_size,
        )
        return result

    def rotaries(self, positions: Tensor) -> list[Tensor]:
        """The rotary table of every layer, [R, head_dim]; layers of one kind share one."""
        kinds = ("global", "local") if any(self.spec.layer_is_sliding) else ("global",)
        tables = [operators().rotary_table(positions, self.tensor(f"rope.{k}")) for k in kinds]
        return [tables[1 if sliding else 0] for sliding in self.spec.layer_is_sliding]

    def forward(
        self,
        token_ids: Tensor,
        positions: Tensor,
        slots: Tensor,
        context_slots: Tensor,
        path_slots: Tensor,
        path_ranges: Tensor,
        output_rows: Tensor,
        *cache: Tensor,
    ) -> Tensor:
        """Logits [O, vocabulary_size] of the rows asked for."""
        seen = (slots, context_slots, path_slots, path_ranges)
        hidden = self.embed(token_ids)
        for layer, rotary in enumerate(self.rotaries(positions)):
            keys_and_values = (cache[layer], cache[self.spec.layers + layer])
            hidden = self.layer(layer, hidden, rotary, (*seen, *keys_and_values))
        return self.logits(hidden, output_rows)

    def layer(self, layer: int, hidden: Tensor, rotary: Tensor, seen: tuple[Tensor, ...]) -> Tensor:
        """hidden [R, hidden_size] after a layer; ``seen``: four of a pass, its keys and values."""
        raise NotImplementedError


class FusedDecoder(BundleModule):
    """Every layer one operator, bit for bit what the native host computes."""

    def __init__(self, bundle: Path) -> None:
        super().__init__(bundle)
        for name in self.entries:
            self.add(name)

    def layer(self, layer: int, hidden: Tensor, rotary: Tensor, seen: tuple[Tensor, ...]) -> Tensor:
        given = layer_arguments(self.spec, layer, self.entries, self.tensor, self.form)
        result: Tensor = operators().decoder_layer_in_place(hidden, rotary, *seen, *given)
        return result


def example_inputs(spec: ModelSpec) -> tuple[Tensor, ...]:
    """Inputs of different sizes in every dimension, so that no two are taken for one."""
    rows, tiles = 5, 3

    def index(*shape: int) -> Tensor:
        return torch.zeros(shape, dtype=torch.int32)

    batch = Pass(
        index(rows), index(rows), index(rows), index(7), index(11), index(rows, 2), index(3)
    )
    keys = torch.zeros(spec.kv_heads, tiles, spec.head_dim, KEY_TILE, dtype=torch.float16)
    values = torch.zeros(spec.kv_heads, tiles * KEY_TILE, spec.head_dim, dtype=torch.float16)
    # Each its own tensor: torch.export takes one given twice for a single input.
    caches = [keys.clone() for _ in range(spec.layers)] + [
        values.clone() for _ in range(spec.layers)
    ]
    return (*batch, *caches)


def dynamic_shapes(spec: ModelSpec, most_rows: int = MOST_ROWS) -> tuple[Any, ...]:
    """The dimensions of ``example_inputs`` that differ from pass to pass, and their limits."""
    rows = torch.export.Dim("rows", min=1, max=most_rows)
    context = torch.export.Dim("context", min=0, max=MOST_CONTEXT)
    paths = torch.export.Dim("paths", min=1, max=MOST_PATHS)
    outputs = torch.export.Dim("outputs", min=0, max=most_rows)
    tiles = torch.export.Dim("tiles", min=1, max=MOST_CONTEXT // KEY_TILE)
    # In the order of a pass: token_ids, positions, slots, context_slots, ...
    batch = ({0: rows}, {0: rows}, {0: rows}, {0: context}, {0: paths}, {0: rows}, {0: outputs})
    caches = [{1: tiles}] * spec.layers + [{1: KEY_TILE * tiles}] * spec.layers
    return (*batch, tuple(caches))
