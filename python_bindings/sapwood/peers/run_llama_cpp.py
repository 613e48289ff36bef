"""llama.cpp, as ``serve.py`` runs it: whole answers, and passes of several rows."""

from __future__ import annotations

import ctypes
import time
from collections.abc import Sequence
from typing import Any

_BATCH = 512  # tokens a pass of the prompt


class Runtime:
    """One context of llama.cpp. Times are wall time of passes whose results have arrived."""

    def __init__(self, weights: str, threads: int, context_length: int) -> None:
        import llama_cpp
        import llama_cpp.llama_cpp as api

        self.version = f"llama-cpp-python {llama_cpp.__version__}"
        self._api = api
        self._quiet = api.llama_log_callback(lambda level, text, user: None)
        api.llama_log_set(self._quiet, ctypes.c_void_p(0))
        api.llama_backend_init()
        model = api.llama_model_load_from_file(weights.encode(), api.llama_model_default_params())
        if not model:
            raise RuntimeError(f"cannot load {weights}")
        parameters = api.llama_context_default_params()
        parameters.n_ctx = context_length
        parameters.n_batch = parameters.n_ubatch = _BATCH
        parameters.n_threads = parameters.n_threads_batch = threads
        self._state = api.llama_init_from_model(model, parameters)
        if not self._state:
            raise RuntimeError(f"no context of {context_length} tokens")
        self._memory = api.llama_get_memory(self._state)
        self._vocabulary = api.llama_vocab_n_tokens(api.llama_model_get_vocab(model))
        self._batch = api.llama_batch_init(_BATCH, 0, 1)
        self._greedy = api.llama_sampler_init_greedy()
        self._made_up_tokens = 0  # of the cache's first, for passes of rows to stand on

    def rows(self, rows: int, context: int) -> dict[str, Any]:
        """Milliseconds of a pass over so many rows after so many tokens, the logits of all
        wanted."""
        if self._made_up_tokens != context:
            self._api.llama_memory_clear(self._memory, True)
            self._pass(self._made_up(0, context), 0, every_logit=False)
            self._made_up_tokens = context
        self._api.llama_memory_seq_rm(self._memory, 0, context, -1)
        taken = self._pass(self._made_up(context, rows), context, every_logit=True)
        return {"milliseconds": 1000 * taken}

    def prefill(self, tokens: int) -> dict[str, Any]:
        """Milliseconds of a pass over a prompt of so many tokens, the last one's logits wanted."""
        self._api.llama_memory_clear(self._memory, True)
        taken = self._pass(self._made_up(0, tokens), 0, every_logit=False)
        # What passes of rows stand on, again, before the answer: then it is the other side's turn.
        self._api.llama_memory_seq_rm(self._memory, 0, min(tokens, self._made_up_tokens), -1)
        self._made_up_tokens = min(tokens, self._made_up_tokens)
        return {"milliseconds": 1000 * taken}

    def answer(self, ids: Sequence[int], most: int, eos: Sequence[int]) -> dict[str, Any]:
        """Greedy tokens after a prompt, and the seconds they took, a pass each. The prompt but for
        its last token is not timed."""
        self._api.llama_memory_clear(self._memory, True)
        self._made_up_tokens = 0
        for begin in range(0, len(ids) - 1, _BATCH):
            self._pass(ids[begin : min(begin + _BATCH, len(ids) - 1)], begin, every_logit=False)
        emitted: list[int] = []
        token = ids[-1]
        start = time.perf_counter()
        while len(emitted) < most and not (emitted and token in eos):
            self._pass([token], len(ids) - 1 + len(emitted), every_logit=False)
            token = self._api.llama_sampler_sample(self._greedy, self._state, -1)
            emitted.append(token)
        return {"ids": emitted, "seconds": time.perf_counter() - start}

    def _made_up(self, begin: int, count: int) -> list[int]:
        return [(begin + index) * 7919 % self._vocabulary for index in range(count)]

    def _pass(self, ids: Sequence[int], begin: int, *, every_logit: bool) -> float:
        """Seconds of a pass over tokens that stand on ``begin`` others."""
        batch = self._batch
        batch.n_tokens = len(ids)
        for index, token in enumerate(ids):
            batch.token[index] = token
            batch.pos[index] = begin + index
            batch.n_seq_id[index] = 1
            batch.seq_id[index][0] = 0
            batch.logits[index] = every_logit or index + 1 == len(ids)
        start = time.perf_counter()
        if self._api.llama_decode(self._state, batch) != 0:
            raise RuntimeError("llama_decode failed")
        self._api.llama_get_logits(self._state)  # waits for the result
        return time.perf_counter() - start
