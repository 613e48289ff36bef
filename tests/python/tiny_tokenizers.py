"""Small tokenizers with the structure of the real ones: byte-level BPE, and Gemma's."""

from __future__ import annotations

import functools
import json
from collections import Counter
from typing import Any

CORPUS = (
    "The tree grows in the forest, and the forest grows with the tree. It's what we'll see there.\n"
    "A small model proposes tokens; the large model checks them all in one pass.  Indentation\n"
    "    matters    in code: for i in range(10): print(i, 'hello', \"world\")\n"
    "Numbers such as 3.14159, 2026 and 1,000,000 are split into digits. Größe, 森林, дерево.\n"
) * 3
SPECIAL_TOKENS = ("<|endoftext|>", "<|im_start|>", "<|im_end|>")

NORMAL, UNKNOWN, CONTROL, USER_DEFINED, UNUSED, BYTE = range(1, 7)
SPACE = "▁"


@functools.cache
def byte_level_tokenizer(vocabulary: int = 480) -> Any:
    """A trained byte-level BPE that cuts text as SmolLM2's does. At most ``vocabulary`` tokens."""
    from tokenizers import Tokenizer, decoders, models, pre_tokenizers, trainers

    tokenizer = Tokenizer(models.BPE())
    tokenizer.pre_tokenizer = pre_tokenizers.Sequence(
        [
            pre_tokenizers.Digits(individual_digits=True),
            pre_tokenizers.ByteLevel(add_prefix_space=False),
        ]
    )
    tokenizer.decoder = decoders.ByteLevel()
    trainer = trainers.BpeTrainer(
        vocab_size=vocabulary,
        special_tokens=list(SPECIAL_TOKENS),
        initial_alphabet=pre_tokenizers.ByteLevel.alphabet(),
        show_progress=False,
    )
    tokenizer.train_from_iterator([CORPUS], trainer)
    return tokenizer


@functools.cache
def gemma_pieces(vocabulary: int = 500) -> tuple[tuple[str, float, int], ...]:
    """(piece, score, type) of a SentencePiece BPE vocabulary: frequent strings, best first."""
    pieces: list[tuple[str, float, int]] = [
        ("<pad>", -1000.0, CONTROL),
        ("<eos>", -1000.0, CONTROL),
        ("<bos>", -1000.0, CONTROL),
        ("<unk>", -1000.0, UNKNOWN),
        ("<start_of_turn>", -1000.0, CONTROL),
        ("<end_of_turn>", -1000.0, CONTROL),
        ("\n\n", -1000.0, USER_DEFINED),
        (SPACE * 2, -1000.0, USER_DEFINED),
        (SPACE * 3, -1000.0, USER_DEFINED),
        (SPACE * 4, -1000.0, USER_DEFINED),
    ]
    pieces += [(f"<0x{byte:02X}>", 0.0, BYTE) for byte in range(256)]
    taken = {piece for piece, _, _ in pieces}
    text = CORPUS.replace(" ", SPACE)
    characters = sorted(set(text))
    counts: Counter[str] = Counter()
    for length in (2, 3, 4):
        for start in range(len(text) - length):
            candidate = text[start : start + length]
            if "\n" not in candidate and SPACE not in candidate[1:]:
                counts[candidate] += 1
    known = set(characters)
    score = 0.0
    for candidate, _ in sorted(counts.items(), key=lambda item: (-item[1], item[0])):
        if len(pieces) + len(characters) >= vocabulary:
            break
        # A piece is reachable only if two others make it up.
        cuts = range(1, len(candidate))
        if candidate in taken or not any(
            candidate[:cut] in known and candidate[cut:] in known for cut in cuts
        ):
            continue
        pieces.append((candidate, score, NORMAL))
        known.add(candidate)
        score -= 1.0
    pieces += [(character, score - index, NORMAL) for index, character in enumerate(characters)]
    return tuple(pieces)


@functools.cache
def gemma_tokenizer_json() -> str:
    """The same vocabulary as a tokenizer.json, written by hand as Gemma's is laid out."""
    pieces = gemma_pieces()
    vocabulary = {piece: token_id for token_id, (piece, _, _) in enumerate(pieces)}
    merges = []
    for piece, score, kind in pieces:
        if kind in (CONTROL, UNKNOWN, BYTE):
            continue
        rank = 0.0 if kind == USER_DEFINED else score
        for cut in range(1, len(piece)):
            left, right = piece[:cut], piece[cut:]
            if left in vocabulary and right in vocabulary:
                merges.append((-rank, vocabulary[left], vocabulary[right], left, right))
    merges.sort()
    added = [
        {
            "id": token_id,
            "content": piece,
            "single_word": False,
            "lstrip": False,
            "rstrip": False,
            "normalized": False,
            "special": kind != USER_DEFINED,
        }
        for token_id, (piece, _, kind) in enumerate(pieces)
        if kind in (CONTROL, UNKNOWN, USER_DEFINED)
    ]
    bos = {"SpecialToken": {"id": "<bos>", "type_id": 0}}
    text = {"Sequence": {"id": "A", "type_id": 0}}
    return json.dumps(
        {
            "version": "1.0",
            "truncation": None,
            "padding": None,
            "added_tokens": added,
            "normalizer": {"type": "Replace", "pattern": {"String": " "}, "content": SPACE},
            "pre_tokenizer": {
                "type": "Split",
                "pattern": {"String": " "},
                "behavior": "MergedWithPrevious",
                "invert": False,
            },
            "post_processor": {
                "type": "TemplateProcessing",
                "single": [bos, text],
                "pair": [bos, text, {"Sequence": {"id": "B", "type_id": 1}}],
                "special_tokens": {"<bos>": {"id": "<bos>", "ids": [2], "tokens": ["<bos>"]}},
            },
            "decoder": {
                "type": "Sequence",
                "decoders": [
                    {"type": "Replace", "pattern": {"String": SPACE}, "content": " "},
                    {"type": "ByteFallback"},
                    {"type": "Fuse"},
                ],
            },
            "model": {
                "type": "BPE",
                "dropout": None,
                "unk_token": "<unk>",
                "continuing_subword_prefix": None,
                "end_of_word_suffix": None,
                "fuse_unk": True,
                "byte_fallback": True,
                "ignore_merges": False,
                "vocab": vocabulary,
                "merges": [[left, right] for _, _, _, left, right in merges],
            },
        }
    )
