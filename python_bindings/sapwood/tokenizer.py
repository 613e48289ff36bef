"""A bundle's tokenizer: text to ids and back, and chats to prompts.

A person's text is data. The markers that a chat template writes (``<|im_start|>``, ``<eos>``, ...)
become special tokens where the template wrote them, and stay ordinary text where a person did.
"""

from __future__ import annotations

import json
import re
import secrets
from collections.abc import Mapping, Sequence
from functools import cached_property
from pathlib import Path
from typing import Any

from tokenizers import Tokenizer as _Tokenizer

from sapwood.chat_template import ChatTemplate, Message
from sapwood.errors import SapwoodError
from sapwood.stream import Detokenizer, make_detokenizer

# Private-use characters around a number: what stands for a marker while a text is rendered.
_OPEN, _CLOSE = "\U0010fffd", "\U0010fffc"
_STAND_IN = re.compile(f"{_OPEN}([0-9]+){_CLOSE}")


class Tokenizer:
    """Text to ids and back, with the ids that Hugging Face's tokenizer gives.

    ``bos_token_id`` is the id that starts every prompt, or None for a family that has none;
    generation ends on any of ``eos_token_ids``.
    """

    def __init__(
        self,
        definition: str,
        *,
        bos_token_id: int | None = None,
        eos_token_ids: Sequence[int] = (),
        chat_template: str | None = None,
        name: str = "tokenizer.json",
    ) -> None:
        """``definition`` is the text of a tokenizer.json. Raises SapwoodError if it is not one."""
        self._definition = definition
        self._name = name
        self._tokenizer = _parse(definition, name)
        self.bos_token_id = bos_token_id
        self.eos_token_ids = tuple(eos_token_ids)
        self.chat_template = None if chat_template is None else ChatTemplate(chat_template)

    @classmethod
    def from_bundle(cls, folder: Path, manifest: Mapping[str, Any]) -> Tokenizer:
        """The tokenizer of a checked bundle: ``manifest`` is its parsed manifest.json."""
        entry = manifest["tokenizer"]
        template = entry.get("chat_template")
        return cls(
            _read(folder / entry["file"]),
            bos_token_id=entry.get("bos_token_id"),
            eos_token_ids=entry.get("eos_token_ids", ()),
            chat_template=None if template is None else _read(folder / template),
            name=str(folder / entry["file"]),
        )

    @property
    def vocabulary_size(self) -> int:
        return int(self._tokenizer.get_vocab_size(with_added_tokens=True))

    def encode(self, text: str, *, markers: bool = False) -> list[int]:
        """The ids of ``text``, without a BOS.

        With ``markers`` the special tokens' own texts inside it become special tokens, as Hugging
        Face does by default; without, they are text like any other.
        """
        self._tokenizer.encode_special_tokens = not markers
        return list(self._tokenizer.encode(text, add_special_tokens=False).ids)

    def encode_prompt(self, text: str) -> list[int]:
        """The ids of a raw prompt: a BOS where the family has one, then the text."""
        return self._with_one_bos(self.encode(text))

    def encode_chat(self, messages: Sequence[Message], **variables: Any) -> list[int]:
        """The ids of a chat up to where the answer begins, as the chat template writes it.

        Equal to ``apply_chat_template(messages, add_generation_prompt=True)`` unless a message
        holds a marker's text. Raises SapwoodError if there is no template or it fails.
        """
        markers = self._markers
        masked, found = _mask(list(messages), markers.pattern)
        rendered = self.render_chat(masked, **variables)
        if not found:
            return self._with_one_bos(self.encode(rendered, markers=True))
        # The template's markers become the renamed ones, which no text of a person can hold; then
        # the person's come back as they were.
        renamed = markers.pattern.sub(lambda match: markers.renamed[match[0]], rendered)
        restored = _STAND_IN.sub(lambda match: found[int(match[1])], renamed)
        return self._with_one_bos(markers.encode(restored))

    def render_chat(self, messages: Sequence[Message], **variables: Any) -> str:
        """The text that the chat template makes of these messages."""
        if self.chat_template is None:
            raise SapwoodError(
                f"{self._name}: the bundle has no chat template; give a raw prompt instead (--raw)"
            )
        return self.chat_template.render(
            messages,
            bos_token=self._text_of(self.bos_token_id),
            eos_token=self._text_of(self.eos_token_ids[0] if self.eos_token_ids else None),
            **variables,
        )

    def decode(self, ids: Sequence[int]) -> str:
        """The text of ``ids``; special tokens have none."""
        return str(self._tokenizer.decode(list(ids), skip_special_tokens=True))

    def token_text(self, token: int) -> str:
        """One token as it is written in the vocabulary, for people to look at."""
        return str(self._tokenizer.id_to_token(token))

    def detokenizer(self) -> Detokenizer:
        """A fresh detokeniser for one stream of ids."""
        return make_detokenizer(self._tokenizer)

    def _text_of(self, token: int | None) -> str:
        return "" if token is None else self.token_text(token)

    def _with_one_bos(self, ids: list[int]) -> list[int]:
        if self.bos_token_id is None:
            return ids
        begin = 0
        while begin < len(ids) and ids[begin] == self.bos_token_id:
            begin += 1
        return [self.bos_token_id, *ids[begin:]]

    @cached_property
    def _markers(self) -> _Markers:
        return _Markers(self._definition, self._name)


class _Markers:
    """The special tokens' texts, and a second tokenizer in which they bear private names.

    With that one a text can be encoded in a single call (so that borders, leading spaces and the
    like come out as ever) in which only the private names are special. It is made on first use.
    """

    def __init__(self, definition: str, name: str) -> None:
        self._definition = definition
        self._name = name
        special = [t["content"] for t in json.loads(definition)["added_tokens"] if t["special"]]
        longest_first = sorted(special, key=len, reverse=True)
        # A pattern without alternatives would match everywhere; this one matches nowhere.
        self.pattern = re.compile("|".join(map(re.escape, longest_first)) or r"(?!)")
        nonce = secrets.token_hex(8)  # so that nobody can write a private name on purpose
        self.renamed = {
            content: f"\U0010fffb{nonce}.{i}\U0010fffb" for i, content in enumerate(special)
        }

    def encode(self, text: str) -> list[int]:
        return list(self._private.encode(text, add_special_tokens=False).ids)

    @cached_property
    def _private(self) -> _Tokenizer:
        document = json.loads(self._definition)
        for token in document["added_tokens"]:
            token["content"] = self.renamed.get(token["content"], token["content"])
        vocabulary = document["model"].get("vocab")
        if isinstance(vocabulary, dict):
            for content, renamed in self.renamed.items():
                if content in vocabulary:
                    vocabulary[renamed] = vocabulary.pop(content)
        else:  # Unigram: a list of [piece, score]
            for piece in vocabulary or ():
                piece[0] = self.renamed.get(piece[0], piece[0])
        document["post_processor"] = None
        if document["model"].get("unk_token") in self.renamed:
            document["model"]["unk_token"] = self.renamed[document["model"]["unk_token"]]
        return _parse(json.dumps(document), self._name)


def _mask(value: Any, pattern: re.Pattern[str]) -> tuple[Any, list[str]]:
    """``value`` with every marker in its strings replaced by a numbered stand-in, and they.

    Stand-ins a person wrote are masked too, so that none is mistaken for ours.
    """
    found: list[str] = []
    masked = re.compile(f"{pattern.pattern}|[{_OPEN}{_CLOSE}]")

    def stand_in(match: re.Match[str]) -> str:
        found.append(match[0])
        return f"{_OPEN}{len(found) - 1}{_CLOSE}"

    def walk(part: Any) -> Any:
        if isinstance(part, str):
            return masked.sub(stand_in, part)
        if isinstance(part, Mapping):
            return {key: walk(item) for key, item in part.items()}
        if isinstance(part, Sequence):
            return [walk(item) for item in part]
        return part

    return walk(value), found


def _parse(definition: str, name: str) -> _Tokenizer:
    try:
        return _Tokenizer.from_str(definition)
    except Exception as error:  # the library raises bare Exception
        raise SapwoodError(
            f"{name}: not a tokenizer.json that this version reads ({error}); "
            "export the bundle again"
        ) from error


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise SapwoodError(f"{path}: cannot be read ({reason}); export the bundle again") from error
