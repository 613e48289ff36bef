"""OpenVINO GenAI, as ``serve.py`` runs it: whole answers."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any


class Runtime:
    """One pipeline on the processor, read from a GGUF file."""

    def __init__(self, weights: str, threads: int, context_length: int) -> None:
        import numpy
        import openvino
        import openvino_genai

        self.version = f"openvino-genai {openvino_genai.__version__}"
        self._numpy, self._openvino, self._genai = numpy, openvino, openvino_genai
        self._pipeline = openvino_genai.LLMPipeline(weights, "CPU", INFERENCE_NUM_THREADS=threads)

    def answer(self, ids: Sequence[int], most: int, eos: Sequence[int]) -> dict[str, Any]:
        """Greedy tokens after a prompt, and the seconds they take at its mean time of a token after
        the first; 0 where there was no second."""
        config = self._genai.GenerationConfig()
        config.max_new_tokens = most
        config.do_sample = False
        if eos:
            config.eos_token_id = eos[0]
            config.stop_token_ids = set(eos)
        prompt = self._numpy.array([ids], dtype=self._numpy.int64)
        everything = self._numpy.ones_like(prompt)
        tensors = (self._openvino.Tensor(prompt), self._openvino.Tensor(everything))
        result = self._pipeline.generate(self._genai.TokenizedInputs(*tensors), config)
        emitted = [int(token) for token in result.tokens[0]]
        milliseconds = result.perf_metrics.get_tpot().mean if len(emitted) > 1 else 0.0
        return {"ids": emitted, "seconds": len(emitted) * milliseconds / 1000}
