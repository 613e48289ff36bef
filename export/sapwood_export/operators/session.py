"""A bundle run by the torch operators: what the runtime must compute, from the same bytes."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from torch import Tensor

from sapwood_export.bundle import read_manifest, verify_bundle
from sapwood_export.models.passes import PassArrays
from sapwood_export.models.session import Logits, SlotSession
from sapwood_export.operators import library
from sapwood_export.operators.layer import layer_arguments
from sapwood_export.operators.reference import KEY_TILE
from sapwood_export.spec import ModelSpec


class OperatorSession(SlotSession):
    """One sequence over ``torch.ops.sapwood``. ``slots`` is a multiple of 16."""

    def __init__(self, bundle: Path, slots: int) -> None:
        super().__init__(slots)
        verify_bundle(bundle)
        manifest = read_manifest(bundle)
        self.spec = spec = ModelSpec.from_manifest(manifest["target"]["spec"])
        self._entries = manifest["target"]["tensors"]
        self._bytes = np.memmap(bundle / manifest["target"]["weights"], dtype=np.uint8, mode="r")
        self._operators = library.operators()
        tiles = (spec.kv_heads, slots // KEY_TILE, spec.head_dim, KEY_TILE)
        plain = (spec.kv_heads, slots, spec.head_dim)
        self.keys = [torch.zeros(tiles, dtype=torch.float16) for _ in range(spec.layers)]
        self.values = [torch.zeros(plain, dtype=torch.float16) for _ in range(spec.layers)]

    @torch.no_grad()
    def run(self, arrays: PassArrays) -> Logits:
        spec, run = self.spec, self._operators
        batch = {name: torch.from_numpy(array) for name, array in arrays.named().items()}
        vocabulary, width = spec.vocabulary_size, spec.hidden_size
        hidden = run.token_embedding(
            batch["token_ids"],
            self._tensor("embedding"),
            self._format("embedding"),
            width,
            vocabulary,
            spec.embedding_scale,
        )
        rotary = [
            run.rotary_table(batch["positions"], self._tensor(f"rope.{kind}"))
            for kind in (("global", "local") if any(spec.layer_is_sliding) else ("global",))
        ]
        for layer, sliding in enumerate(spec.layer_is_sliding):
            hidden = self._layer(layer, hidden, rotary[1 if sliding else 0], batch)
        head = "embedding" if spec.tied_head else "head"
        logits = run.output_head(
            hidden,
            batch["output_rows"],
            self._tensor("final_norm"),
            self._tensor(head),
            self._format(head),
            spec.norm_epsilon,
            vocabulary,
        )
        result: Logits = logits.numpy()
        return result

    def _layer(
        self, layer: int, hidden: Tensor, rotary: Tensor, batch: dict[str, Tensor]
    ) -> Tensor:
        outputs = self._operators.decoder_layer(
            hidden,
            rotary,
            *(batch[name] for name in ("slots", "context_slots", "path_slots", "path_ranges")),
            self.keys[layer],
            self.values[layer],
            *layer_arguments(self.spec, layer, self._entries, self._tensor, self._format),
        )
        hidden, self.keys[layer], self.values[layer] = outputs
        return hidden

    def _format(self, name: str) -> str:
        return str(self._entries[name]["format"])

    def _tensor(self, name: str) -> Tensor:
        """Packed bytes as uint8, plain numbers as float32."""
        entry = self._entries[name]
        raw = np.array(self._bytes[entry["offset"] : entry["offset"] + entry["bytes"]])
        if entry["format"] == "float32":
            return torch.from_numpy(raw.view("<f4").reshape(entry["shape"]))
        return torch.from_numpy(raw)
