"""tokenizer.json from a GGUF file's metadata, giving the ids that Hugging Face's tokenizer gives.

Two kinds. ``gpt2`` is byte-level BPE with its merges in the file; the pre-tokenizer is known by
name only, and an unknown name is refused, since another splitting gives other ids. ``llama`` is
SentencePiece BPE, whose merges follow from the scores; of its users only Gemma is known here.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from sapwood.errors import SapwoodError
from sapwood_export.tokenizer import TokenizerFiles, check_ids, eos_union

if TYPE_CHECKING:
    from tokenizers import Tokenizer

_NORMAL, _UNKNOWN, _CONTROL, _USER_DEFINED, _UNUSED, _BYTE = range(1, 7)

_CONTRACTIONS = r"(?i:'s|'t|'re|'ve|'m|'ll|'d)"
_LLAMA3_SPLIT = (
    _CONTRACTIONS
    + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}{1,3}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)
_QWEN2_SPLIT = (
    _CONTRACTIONS
    + r"|[^\r\n\p{L}\p{N}]?\p{L}+|\p{N}| ?[^\s\p{L}\p{N}]+[\r\n]*|\s*[\r\n]+|\s+(?!\S)|\s+"
)


_SPACE_MARK = "▁"
_GEMMA_TEXT = re.compile(r"<unused\d+>|<mask>")


@dataclass(frozen=True)
class _PreTokenizer:
    """How the byte-level BPE of one family cuts text before it merges."""

    split: str | None = None  # a pattern whose matches stand alone; None: the digits, then GPT-2's
    unicode_nfc: bool = False
    ignore_merges: bool = False  # a piece that is in the vocabulary as a whole is not merged up
    adds_bos: bool = False  # unless the file says otherwise
    end_tokens: tuple[str, ...] = ()  # which end generation though the file declares one only


_LLAMA3 = _PreTokenizer(split=_LLAMA3_SPLIT, ignore_merges=True, adds_bos=True)
_PRE_TOKENIZERS = {
    "smollm": _PreTokenizer(),
    "llama-bpe": _LLAMA3,
    "llama3": _LLAMA3,
    "llama-v3": _LLAMA3,
    "qwen2": _PreTokenizer(split=_QWEN2_SPLIT, unicode_nfc=True, end_tokens=("<|endoftext|>",)),
}


def tokenizer_from_gguf(
    path: Path, metadata: Mapping[str, Any], vocabulary_size: int
) -> TokenizerFiles:
    """Builds the tokenizer of a GGUF file from its ``tokenizer.*`` keys."""
    model = metadata.get("tokenizer.ggml.model")
    if model is None:
        raise SapwoodError(f"{path}: the tokenizer is missing: no 'tokenizer.ggml.model'")
    reader = _Metadata(path, metadata)
    if model == "gpt2":
        pre_name = str(metadata.get("tokenizer.ggml.pre", "default"))
        pre = _PRE_TOKENIZERS.get(pre_name)
        if pre is None:
            raise SapwoodError(
                f"{path}: unknown pre-tokenizer '{pre_name}'; known are "
                f"{', '.join(_PRE_TOKENIZERS)}"
            )
        tokenizer = _byte_level_bpe(reader, pre)
        adds_bos, end_tokens = pre.adds_bos, pre.end_tokens
    elif model == "llama":
        if not str(metadata.get("general.architecture", "")).startswith("gemma"):
            raise SapwoodError(
                f"{path}: a SentencePiece tokenizer of the architecture "
                f"'{metadata.get('general.architecture')}'; only Gemma's is known"
            )
        tokenizer = _gemma_bpe(reader)
        adds_bos, end_tokens = True, ()
    else:
        raise SapwoodError(f"{path}: unknown tokenizer '{model}'; known are gpt2 and llama")
    check_ids(str(path), tokenizer, vocabulary_size)
    declared_bos = metadata.get("tokenizer.ggml.add_bos_token")
    if isinstance(declared_bos, bool):
        adds_bos = declared_bos
    special_tokens = {
        name: reader.tokens[token_id]
        for name, token_id in (
            ("bos_token", reader.token_id("bos")),
            ("eos_token", reader.token_id("eos")),
            ("unk_token", reader.token_id("unknown")),
            ("pad_token", reader.token_id("padding")),
        )
        if token_id is not None
    }
    bos = None
    if adds_bos:
        bos = reader.token_id("bos")
        if bos is None:
            raise SapwoodError(f"{path}: a beginning-of-text token is to be added, none is named")
        _prepend(tokenizer, reader.tokens[bos], bos)
    declared = [reader.token_id(name) for name in ("eos", "eot", "eom")]
    declared += [tokenizer.token_to_id(token) for token in end_tokens]
    template = metadata.get("tokenizer.chat_template")
    return TokenizerFiles(
        json_bytes=tokenizer.to_str().encode("utf-8"),
        chat_template=template if isinstance(template, str) and template else None,
        bos_token_id=bos,
        eos_token_ids=eos_union(
            str(path), tokenizer, [end for end in declared if end is not None], vocabulary_size
        ),
        special_tokens=special_tokens,
    )


class _Metadata:
    """The tokenizer's keys, checked for length and kind."""

    def __init__(self, path: Path, metadata: Mapping[str, Any]) -> None:
        self.path, self._metadata = path, metadata
        tokens = metadata.get("tokenizer.ggml.tokens")
        if not isinstance(tokens, list) or not tokens:
            raise SapwoodError(f"{path}: the tokenizer is missing: no 'tokenizer.ggml.tokens'")
        self.tokens: list[str] = list(tokens)
        types = metadata.get("tokenizer.ggml.token_type")
        if types is None:
            self.types = [_NORMAL] * len(tokens)
        else:
            self._check_length("token_type", types)
            self.types = [int(kind) for kind in np.nan_to_num(types)]

    def restore_gemma(self) -> None:
        """Undoes what llama.cpp's converter does to Gemma's vocabulary.

        It writes the runs of spaces that the vocabulary fixes as spaces instead of SentencePiece's
        marks, and calls the unused entries control tokens; in Gemma's tokenizer they are text.
        """
        for token_id, token in enumerate(self.tokens):
            if self.types[token_id] == _USER_DEFINED:
                self.tokens[token_id] = token.replace(" ", _SPACE_MARK)
            elif self.types[token_id] == _CONTROL and _GEMMA_TEXT.fullmatch(token):
                self.types[token_id] = _USER_DEFINED

    def _check_length(self, key: str, values: Any) -> None:
        if not isinstance(values, np.ndarray) or len(values) != len(self.tokens):
            raise SapwoodError(
                f"{self.path}: 'tokenizer.ggml.{key}' does not hold one number for each of the "
                f"{len(self.tokens)} tokens"
            )

    def token_id(self, name: str) -> int | None:
        """A special token's id; ``name`` is e.g. "bos"."""
        value = self._metadata.get(f"tokenizer.ggml.{name}_token_id")
        if value is None:
            return None
        if not isinstance(value, int) or not 0 <= value < len(self.tokens):
            raise SapwoodError(
                f"{self.path}: the {name} token id {value} is outside the vocabulary of "
                f"{len(self.tokens)}"
            )
        return value

    def vocabulary(self) -> dict[str, int]:
        """Token to id, without the entries that only pad the embedding to a round size."""
        kept = {
            token: token_id
            for token_id, token in enumerate(self.tokens)
            if self.types[token_id] != _UNUSED
        }
        wanted = sum(kind != _UNUSED for kind in self.types)
        if len(kept) != wanted:
            raise SapwoodError(f"{self.path}: {wanted - len(kept)} tokens appear twice")
        return kept

    def merges(self) -> list[tuple[str, str]]:
        lines = self._metadata.get("tokenizer.ggml.merges")
        if not isinstance(lines, list):
            raise SapwoodError(f"{self.path}: the key 'tokenizer.ggml.merges' is missing")
        pairs = []
        for line in lines:
            left, space, right = line.partition(" ")
            if not (left and space and right):
                raise SapwoodError(f"{self.path}: the merge {line!r} is not a pair")
            pairs.append((left, right))
        return pairs

    def scores(self) -> list[float]:
        scores = self._metadata.get("tokenizer.ggml.scores")
        self._check_length("scores", scores)
        assert isinstance(scores, np.ndarray)
        return [float(score) for score in scores]


def _byte_level_bpe(reader: _Metadata, pre: _PreTokenizer) -> Tokenizer:
    from tokenizers import Regex, Tokenizer, decoders, models, normalizers, pre_tokenizers

    try:
        model = models.BPE(
            vocab=reader.vocabulary(),
            merges=reader.merges(),
            ignore_merges=pre.ignore_merges,
            fuse_unk=False,
            byte_fallback=False,
        )
    except Exception as error:  # the library raises bare Exceptions
        raise SapwoodError(f"{reader.path}: the tokenizer's merges: {error}") from None
    tokenizer = Tokenizer(model)
    if pre.unicode_nfc:
        tokenizer.normalizer = normalizers.NFC()
    first = (
        pre_tokenizers.Digits(individual_digits=True)
        if pre.split is None
        else pre_tokenizers.Split(Regex(pre.split), behavior="isolated")
    )
    bytes_of = pre_tokenizers.ByteLevel(add_prefix_space=False, use_regex=pre.split is None)
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence([first, bytes_of])
    tokenizer.decoder = decoders.ByteLevel()
    _add_tokens(tokenizer, reader)
    return tokenizer


def _gemma_bpe(reader: _Metadata) -> Tokenizer:
    from tokenizers import Tokenizer, decoders, models, normalizers, pre_tokenizers

    reader.restore_gemma()
    unknown = reader.token_id("unknown")
    try:
        model = models.BPE(
            vocab=reader.vocabulary(),
            merges=_merges_from_scores(reader),
            unk_token=None if unknown is None else reader.tokens[unknown],
            fuse_unk=True,
            byte_fallback=True,
        )
    except Exception as error:  # the library raises bare Exceptions
        raise SapwoodError(f"{reader.path}: the tokenizer's merges: {error}") from None
    tokenizer = Tokenizer(model)
    tokenizer.normalizer = normalizers.Replace(" ", _SPACE_MARK)
    tokenizer.pre_tokenizer = pre_tokenizers.Split(" ", behavior="merged_with_previous")
    tokenizer.decoder = decoders.Sequence(
        [decoders.Replace(_SPACE_MARK, " "), decoders.ByteFallback(), decoders.Fuse()]
    )
    _add_tokens(tokenizer, reader)
    return tokenizer


def _merges_from_scores(reader: _Metadata) -> list[tuple[str, str]]:
    """Every way to split a piece into two others, the best piece first.

    SentencePiece joins the pair whose union scores best. A list of pairs in the order of their
    unions' scores says the same to a BPE that joins the pair that comes first.
    """
    vocabulary = reader.vocabulary()
    scores = reader.scores()
    ranked = []
    for piece, piece_id in vocabulary.items():
        kind = reader.types[piece_id]
        if kind in (_CONTROL, _UNKNOWN, _BYTE):
            continue
        # The file marks pieces that the author fixed with a score that is not theirs.
        score = 0.0 if kind == _USER_DEFINED else scores[piece_id]
        for cut in range(1, len(piece)):
            left, right = piece[:cut], piece[cut:]
            if left in vocabulary and right in vocabulary:
                ranked.append((score, left, right))
    # Within a piece the longer left part first: how the published Gemma tokenizers are ordered.
    ranked.sort(key=lambda entry: (entry[0], len(entry[1]), len(entry[2])), reverse=True)
    return [(left, right) for _, left, right in ranked]


def _add_tokens(tokenizer: Tokenizer, reader: _Metadata) -> None:
    """Control tokens are special; those the author defined are matched whole, but are text."""
    from tokenizers import AddedToken

    for wanted, special in ((_CONTROL, True), (_USER_DEFINED, False)):
        tokens = [
            AddedToken(token, normalized=False, special=special)
            for token, kind in zip(reader.tokens, reader.types, strict=True)
            if kind == wanted or (special and kind == _UNKNOWN)
        ]
        # One call for all: each call rebuilds the matcher of every added token.
        add = tokenizer.add_special_tokens if special else tokenizer.add_tokens
        add(tokens)


def _prepend(tokenizer: Tokenizer, token: str, token_id: int) -> None:
    """Makes encoding with special tokens put the token in front, as Hugging Face's file does."""
    from tokenizers import processors

    tokenizer.post_processor = processors.TemplateProcessing(
        single=f"{token} $A",
        pair=f"{token} $A {token}:1 $B:1",
        special_tokens=[(token, token_id)],
    )
