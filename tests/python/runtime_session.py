"""The compiled runtime as a session of slots, to stand beside torch and the exported graphs."""

from __future__ import annotations

from typing import Any

from sapwood import _runtime
from sapwood_export.models.passes import PassArrays
from sapwood_export.models.session import Logits, SlotSession


class RuntimeSession(SlotSession):
    """A model on any host of the runtime, with a KV store of its own."""

    def __init__(self, model: Any, slots: int, kv: str = "float16") -> None:
        super().__init__(slots)
        spec = model.spec
        self._model = model
        self._kv = _runtime.KvStore.create(spec.layers, spec.kv_heads, spec.head_dim, slots, kv)

    def run(self, arrays: PassArrays) -> Logits:
        logits: Logits = self._model.forward(
            self._kv,
            tokens=arrays.token_ids.tolist(),
            positions=arrays.positions.tolist(),
            slots=arrays.slots.tolist(),
            context_slots=arrays.context_slots.tolist(),
            path_slots=arrays.path_slots.tolist(),
            path_begin=arrays.path_ranges[:, 0].tolist(),
            path_end=arrays.path_ranges[:, 1].tolist(),
            output_rows=arrays.output_rows.tolist(),
        )
        return logits
