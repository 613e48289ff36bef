"""Runs exported graphs in ONNX Runtime, and says how far two models' predictions lie apart."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import onnx
import onnxruntime
from numpy.typing import NDArray

from sapwood_export.models.passes import PassArrays
from sapwood_export.models.session import Logits, SlotSession


class OnnxSession(SlotSession):
    """A target or reference graph, with a cache of the type and layout that the graph asks for.

    ``graph`` is a file or a model in memory, ``library`` our operators for ONNX Runtime, which a
    graph with any of them needs; ``weights`` are fed for weight inputs that the graph still has.
    """

    def __init__(
        self,
        graph: Path | onnx.ModelProto,
        slots: int,
        library: Path | None = None,
        weights: Mapping[str, NDArray[np.generic]] | None = None,
    ) -> None:
        super().__init__(slots)
        options = onnxruntime.SessionOptions()
        options.log_severity_level = 3
        if library is not None:
            options.register_custom_ops_library(str(library))
        self._session = onnxruntime.InferenceSession(
            str(graph) if isinstance(graph, Path) else graph.SerializeToString(), options
        )
        self._outputs = [output.name for output in self._session.get_outputs()]
        self._weights = dict(weights or {})
        self._inputs = {value.name for value in self._session.get_inputs()}
        sizes = {"slots": slots, "tiles": slots // 16}
        self._cache: dict[str, NDArray[np.generic]] = {}
        for value in self._session.get_inputs():
            if value.name.startswith("past_"):
                shape = [sizes.get(size, size) for size in value.shape]
                half = value.type == "tensor(float16)"
                self._cache[value.name] = np.zeros(shape, np.float16 if half else np.float32)

    def run(self, arrays: PassArrays) -> Logits:
        feeds = {**self._weights, **arrays.named(), **self._cache}
        feeds = {name: array for name, array in feeds.items() if name in self._inputs}
        results = dict(zip(self._outputs, self._session.run(self._outputs, feeds), strict=True))
        logits: Logits = results.pop("logits")
        for name, array in results.items():
            self._cache[name.replace("present", "past")] = array
        return logits


def log_softmax(logits: Logits) -> Logits:
    """Natural logarithms of the probabilities along the last axis, sums taken in double."""
    shifted = logits - logits.max(axis=-1, keepdims=True)
    total = np.exp(shifted).sum(axis=-1, keepdims=True, dtype=np.float64)
    result: Logits = shifted - np.log(total).astype(np.float32)
    return result


def divergences(reference: Logits, logits: Logits) -> NDArray[np.float64]:
    """KL(reference || other) of each row, in nats; right to about 1e-6."""
    log_p, log_q = log_softmax(reference), log_softmax(logits)
    products = np.exp(log_p) * (log_p - log_q)
    result: NDArray[np.float64] = products.sum(axis=-1, dtype=np.float64)
    return result


def mean_divergence(
    reference: SlotSession, other: SlotSession, tokens: Sequence[int], chunk: int = 64
) -> float:
    """Mean KL in nats over a text, both sessions reading it ``chunk`` tokens a pass."""
    total = 0.0
    for begin in range(0, len(tokens), chunk):
        part = tokens[begin : begin + chunk]
        total += float(divergences(reference.extend(part), other.extend(part)).sum())
    return total / len(tokens)
