"""Python's own language reference, the English text that every installation has, as tokens."""

from __future__ import annotations

from pathlib import Path


def english_tokens(bundle: Path, count: int) -> list[int]:
    """Its first ``count`` tokens in the bundle's vocabulary."""
    from pydoc_data.topics import topics

    from tokenizers import Tokenizer

    text = "\n\n".join(topics[name] for name in sorted(topics))[: count * 8]
    tokenizer = Tokenizer.from_file(str(bundle / "tokenizer.json"))
    tokens: list[int] = tokenizer.encode(text, add_special_tokens=False).ids
    assert len(tokens) >= count
    return tokens[:count]
