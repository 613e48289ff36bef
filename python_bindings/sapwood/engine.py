"""A bundle, ready to answer: the Python face of the runtime.

>>> import sapwood
>>> engine = sapwood.Engine("bundles/smollm2")
>>> for piece in engine.generate("Explain photosynthesis to a child."):
...     print(piece, end="")
>>> engine.stats.tokens_per_second
"""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from sapwood import _runtime
from sapwood.chat_template import Message
from sapwood.cost_cache import CostKey, load_costs
from sapwood.drafting import TAKES_DRAFT, Drafting, open_drafting
from sapwood.errors import SapwoodError
from sapwood.generation import Generation
from sapwood.hosts import open_model
from sapwood.manifest import read_manifest, tokenizer_sha256
from sapwood.metrics import Metrics
from sapwood.options import AnswerOptions, EngineOptions, completed, default_threads, showing
from sapwood.paths import resolve_bundle
from sapwood.profile import asked_text, beginning_with, scenario_of
from sapwood.stats import Stats
from sapwood.survey_cache import BEGINNERS, load_survey
from sapwood.tokenizer import Tokenizer

if TYPE_CHECKING:
    from typing_extensions import Unpack

DEFAULT_CONTEXT_LENGTH = 2048


class Engine:
    """One model in memory, with one KV cache: earlier prompts and answers stay in it as long as
    there is room, and a prompt that begins like one of them is computed only from where it parts
    ways (``stats.reused_prompt_tokens``).

    ``bundle``: a folder that ``sapwood export`` wrote; None: the default one.
    ``options``: those of ``EngineOptions`` (sapwood/options.py). What generate is not told, the
    bundle's defaults say.

    What ``sapwood tune`` measured for this bundle on this device, and what it found its target to
    say after every token, is used where it is there. What
    the drafter learns from one answer helps the next, until ``forget``.

    Raises SapwoodError for a bundle, host or option that cannot be used.
    """

    @showing(EngineOptions)
    def __init__(
        self,
        bundle: str | os.PathLike[str] | None = None,
        **options: Unpack[EngineOptions],
    ) -> None:
        self.options = completed(EngineOptions, options)
        self.bundle = resolve_bundle(bundle)
        self.host = self.options["host"]
        self.threads = self.options["threads"] or default_threads()
        self.model = open_model(self.bundle, host=self.host, threads=self.threads)
        self.manifest = read_manifest(self.bundle)
        defaults = self.manifest.get("defaults", {})
        self.mode = self.options["mode"] or defaults.get("mode", "dynamic")
        self.context_length = self.options["context_length"] or defaults.get(
            "context_length", DEFAULT_CONTEXT_LENGTH
        )
        # What the manifest says is checked like what a person says.
        completed(EngineOptions, {"mode": self.mode, "context_length": self.context_length})
        self.tokenizer = Tokenizer.from_bundle(self.bundle, self.manifest)
        self.measured_costs = load_costs(
            CostKey.of(self.manifest, host=self.host, threads=self.threads, kv=self.options["kv"])
        )
        self.drafting = self._open_drafting(self.options["drafter"], self.options["draft"])
        self.options["drafter"], self.options["draft"] = self.drafting.drafter, self.drafting.folder
        ngram = self.options["ngram"]
        self.surveyed = False  # drafters begin with what `sapwood tune` heard from the target
        if ngram is not None:
            self._ngram: _runtime.NgramTable | None = self._read_ngram(ngram)
        elif self.options["drafter"] in BEGINNERS:
            self._ngram = load_survey(self.manifest)
            self.surveyed = self._ngram is not None
        else:
            self._ngram = None
        self._ring: _runtime.TraceRing | None = None
        self.session = self.new_session()
        self._latest: Generation | None = None

    @property
    def stats(self) -> Stats:
        """Of the latest answer. Raises SapwoodError before the first."""
        if self._latest is None:
            raise SapwoodError("nothing has been generated yet, so there are no statistics")
        return self._latest.stats

    @property
    def metrics(self) -> Metrics:
        """How the latest answer is going. Raises SapwoodError before the first."""
        if self._latest is None:
            raise SapwoodError("nothing has been generated yet, so there are no metrics")
        return self._latest.metrics

    @showing(AnswerOptions)
    def generate(
        self,
        prompt: str | Sequence[Message],
        *,
        system: str | None = None,
        raw: bool = False,
        **options: Unpack[AnswerOptions],
    ) -> Generation:
        """An iterator over the answer's text, in pieces of whole characters.

        ``prompt`` is a person's text, put into the bundle's chat template after ``system``, or the
        messages of a chat; with ``raw``, or where the bundle has no template, the text is continued
        as it stands. ``options``: those of ``AnswerOptions`` (sapwood/options.py).
        Raises SapwoodError for an option out of range or a prompt that does not fit the context.
        """
        ids = self.encode(prompt, system=system, raw=raw)
        answer = completed(AnswerOptions, options)
        answer["mode"] = answer["mode"] or self.mode
        scenario = scenario_of(answer, asked_text(prompt, system))
        if self._latest is not None:
            self._latest.close()
        self._latest = Generation(self, ids, beginning_with(answer, scenario), scenario)
        return self._latest

    def forget(self) -> None:
        """Ends the latest answer and forgets it: the next prompt is computed in full, and the
        drafter starts anew."""
        if self._latest is not None:
            self._latest.close()
        self.session = self.new_session()

    def chat(self, *, system: str | None = None) -> Chat:
        """A conversation: remembers its turns, and computes only what is new in each."""
        return Chat(self, system=system)

    def new_session(self, drafter: str | None = None) -> _runtime.Session:
        """Another session over the same model, with a cache and a drafter of its own: the engine's,
        or another one by name, with what the engine has that it takes."""
        drafting, ngram = self.drafting, self._ngram
        if drafter not in (None, drafting.drafter):
            draft = self.options["draft"] if drafter in TAKES_DRAFT else None
            drafting = self._open_drafting(drafter, draft)
            if drafter not in BEGINNERS:
                ngram = None
            elif ngram is None:
                ngram = load_survey(self.manifest)
        session = _runtime.Session.create(
            self.model,
            context_length=self.context_length,
            drafter=drafting.drafter,
            measured_costs=self.measured_costs,
            ngram=ngram,
            draft_model=drafting.model,
            trained_draft=drafting.trained,
            kv=self.options["kv"],
            share_prefixes=not self.options["forget_texts"],
            kv_slots=self.options["kv_slots"] or 0,
            draft_thread=self.options["draft_threads"] > 0,
            double_buffer=self.options["double_buffer"],
        )
        session.record_into(self._ring)
        return session

    def record(self, capacity: int = 1 << 16) -> _runtime.TraceRing:
        """From here on what the runtime does goes into the ring that is returned: its latest
        ``capacity`` events. ``sapwood.trace`` writes them to a file and explains them."""
        self._ring = _runtime.TraceRing(capacity)
        self.session.record_into(self._ring)
        return self._ring

    def _open_drafting(self, drafter: str | None, draft: str | os.PathLike[str] | None) -> Drafting:
        return open_drafting(
            drafter,
            draft,
            target=self.model,
            target_folder=self.bundle,
            manifest=self.manifest,
            threads=self.options["draft_threads"] or self.threads,
            own_threads=self.options["draft_threads"] > 0,
        )

    def _read_ngram(self, path: str | os.PathLike[str]) -> _runtime.NgramTable:
        return _runtime.NgramTable.read(
            os.fspath(path),
            vocabulary=self.manifest["target"]["spec"]["vocabulary_size"],
            tokenizer_sha256=tokenizer_sha256(self.manifest),
        )

    def encode(
        self,
        prompt: str | Sequence[Message],
        *,
        system: str | None = None,
        raw: bool = False,
    ) -> list[int]:
        """The ids that ``generate`` would answer to."""
        if isinstance(prompt, str):
            if raw or self.tokenizer.chat_template is None:
                if system is not None:
                    raise SapwoodError("system: a raw prompt has no place for it; leave it out")
                return self.tokenizer.encode_prompt(prompt)
            prompt = [{"role": "user", "content": prompt}]
        elif raw:
            raise SapwoodError("raw: needs a text, not messages")
        messages = list(prompt)
        if system is not None:
            messages.insert(0, {"role": "system", "content": system})
        return self.tokenizer.encode_chat(messages)


class Chat:
    """The turns of one conversation. ``messages`` may be read and changed between turns."""

    def __init__(self, engine: Engine, *, system: str | None = None) -> None:
        self._engine = engine
        self._system = system
        self.messages: list[dict[str, str]] = []
        self.clear()

    def clear(self) -> None:
        """Forgets every turn but the system's."""
        self.messages = []
        if self._system is not None:
            self.messages.append({"role": "system", "content": self._system})

    @showing(AnswerOptions)
    def say(self, text: str, **options: Unpack[AnswerOptions]) -> Iterator[str]:
        """The answer's pieces; both turns are kept once it has ended, or was ended early."""
        turn = {"role": "user", "content": text}
        with self._engine.generate([*self.messages, turn], **options) as generation:
            try:
                yield from generation
            finally:
                self.messages += [turn, {"role": "assistant", "content": generation.text}]
