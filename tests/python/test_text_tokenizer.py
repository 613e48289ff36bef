"""The engine's own tokenizer gives the ids of Hugging Face's, and its text back."""

from __future__ import annotations

import json
import random
from functools import cache
from pathlib import Path
from typing import Any

import pytest
from tokenizers import Tokenizer as TheirTokenizer

import tiny_tokenizers
from sapwood import _runtime
from sapwood.errors import SapwoodError
from sapwood_export.gguf_tokenizer import _LLAMA3_SPLIT, _QWEN2_SPLIT

KINDS = ("smollm2", "llama3", "qwen2", "gemma")
# Scripts, emoji, code, control characters, what normalisers change, markers and pieces of them.
PARTS = [
    "Hello", "world", " don't", " I'LL", "'S", "'\u017f", " we've ", "caf\xe9", "e\u0301",
    "\uff21", "\u65e5\u672c\u8a9e", "\ud55c\uad6d\uc5b4", "\u1100\u1161\u11a8", "\uac00\u11a8",
    "\u0627\u0644\u0639\u0631\u0628\u064a\u0629", "\u0939\u093f\u0928\u094d\u0926\u0940",
    "\u0e44\u0e17\u0e22", "\U0001f333", "\U0001f469\u200d\U0001f467", "\n", "\n\n", "\r\n", "\t",
    "  ", "   ", "123", "4567", "\u0661\u0662\u0663", "\xbd", "\u2167", "<|im_start|>",
    "<|im_end|>", "<eos>", "<bos>", "<start_of_turn>", "<|im_", "def f(x):\n    return x**2\n",
    '{"a": [1, 2]}', "\x00", "\x1c", "\u2028", "\xa0", "\u3000", "\u0345", "\u0327\u0301",
    "\ufb01", "\xdf", "//==", "...", "!?", "_", "\ufffd", "\u2581", "\u2581\u2581", "<0x0A>",
    "\U0001d7d8", "\U00011de0", "\u1e9b\u0323", "\u0f73", "q\u0307\u0323",
]  # fmt: skip


def random_character(chance: random.Random) -> str:
    code = chance.choice([chance.randrange(limit) for limit in (0x7F, 0x250, 0x3000, 0x110000)])
    return "A" if 0xD800 <= code < 0xE000 else chr(code)


def random_text(chance: random.Random) -> str:
    count = chance.randint(0, 12)
    return "".join(
        chance.choice(PARTS) if chance.random() < 0.6 else random_character(chance)
        for _ in range(count)
    )


def definition(kind: str, smollm2: Path) -> str:
    """A tokenizer.json of each family: SmolLM2's vocabulary under the others' rules, and Gemma's
    layout over a small vocabulary."""
    if kind == "gemma":
        return tiny_tokenizers.gemma_tokenizer_json()
    document = json.loads((smollm2 / "tokenizer.json").read_text(encoding="utf-8"))
    if kind != "smollm2":
        pattern = _LLAMA3_SPLIT if kind == "llama3" else _QWEN2_SPLIT
        split = {
            "type": "Split",
            "pattern": {"Regex": pattern},
            "behavior": "Isolated",
            "invert": False,
        }
        bytes_only = {
            "type": "ByteLevel",
            "add_prefix_space": False,
            "trim_offsets": True,
            "use_regex": False,
        }
        document["pre_tokenizer"] = {"type": "Sequence", "pretokenizers": [split, bytes_only]}
        document["normalizer"] = {"type": "NFC"} if kind == "qwen2" else None
        document["model"]["ignore_merges"] = kind == "llama3"
    return json.dumps(document)


@cache
def both(kind: str, smollm2: Path) -> tuple[_runtime.TextTokenizer, Any]:
    text = definition(kind, smollm2)
    return _runtime.TextTokenizer(text), TheirTokenizer.from_str(text)


@pytest.mark.parametrize("kind", KINDS)
def test_ids_equal_hugging_faces_on_any_text(kind: str, smollm2: Path) -> None:
    ours, theirs = both(kind, smollm2)
    chance = random.Random(1)
    for _ in range(400):
        text = random_text(chance)
        for markers in (False, True):
            theirs.encode_special_tokens = not markers
            expected = theirs.encode(text, add_special_tokens=False).ids
            assert ours.encode(text, markers) == expected, (text, markers)


@pytest.mark.parametrize("kind", ["smollm2", "qwen2"])
def test_ids_equal_hugging_faces_on_every_character(kind: str, smollm2: Path) -> None:
    ours, theirs = both(kind, smollm2)
    theirs.encode_special_tokens = True
    for begin in range(0, 0x30000, 512):
        codes = [code for code in range(begin, begin + 512) if not 0xD800 <= code < 0xE000]
        text = "a".join(f"{chr(code)}{chr(code)} " for code in codes)
        assert ours.encode(text) == theirs.encode(text, add_special_tokens=False).ids, hex(begin)


@pytest.mark.parametrize("kind", KINDS)
def test_pieces_of_text_join_to_hugging_faces_decoding_whatever_the_ids(
    kind: str, smollm2: Path
) -> None:
    ours, theirs = both(kind, smollm2)
    chance = random.Random(2)
    for _ in range(400):
        ids = [chance.randrange(theirs.get_vocab_size()) for _ in range(chance.randint(0, 10))]
        if chance.random() < 0.5:
            ids = ours.encode(random_text(chance))
            del ids[chance.randrange(len(ids) + 1) :]
        stream = _runtime.TextDetokenizer(ours)
        pieces = [stream.push(token) for token in ids]
        whole = theirs.decode(ids, skip_special_tokens=True)
        assert "".join(pieces) + stream.finish() == whole, ids
        assert all("\ufffd" not in piece for piece in pieces) or "\ufffd" in whole


def test_a_stop_text_is_found_however_the_text_is_cut() -> None:
    chance = random.Random(3)
    for _ in range(300):
        text = "".join(chance.choice("ab\xe9") for _ in range(chance.randint(0, 12)))
        stops = ["".join(chance.choice("ab\xe9") for _ in range(chance.randint(1, 4)))]
        matcher = _runtime.TextStopMatcher(stops)
        got = ""
        for character in text:
            got += matcher.push(character)
        found = stops[0] in text
        assert matcher.matched == found
        assert got + matcher.finish() == (text[: text.index(stops[0])] if found else text)


def test_a_text_has_at_least_as_many_ids_as_promised(smollm2: Path) -> None:
    chance = random.Random(4)
    for kind in KINDS:
        ours, _ = both(kind, smollm2)
        for text in [random_text(chance) for _ in range(100)] + [" " * 500, "\n" * 500, "=" * 500]:
            assert len(ours.encode(text, True)) >= ours.least_ids(len(text.encode()))


@pytest.mark.parametrize(
    ("change", "word"),
    [
        ({"normalizer": {"type": "Lowercase"}}, "Lowercase"),
        ({"pre_tokenizer": {"type": "Whitespace"}}, "Whitespace"),
        ({"decoder": {"type": "WordPiece"}}, "decoder"),
        ({"model": {"type": "Unigram", "vocab": []}}, "Unigram"),
    ],
)
def test_what_it_does_not_know_it_refuses_by_name(change: dict[str, Any], word: str) -> None:
    document = json.loads(tiny_tokenizers.gemma_tokenizer_json()) | change
    with pytest.raises(SapwoodError, match=word):
        _runtime.TextTokenizer(json.dumps(document))


@pytest.mark.parametrize("text", ["", "{}", "[]", "null", '{"model": 1}', '{"model": {"vocab": {'])
def test_a_tokenizer_that_is_none_is_named(text: str) -> None:
    with pytest.raises(SapwoodError, match=r"here\.json"):
        _runtime.TextTokenizer(text, "here.json")
