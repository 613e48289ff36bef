"""Incremental text: equal to one decode, never half a character, stop strings found and cut."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import accumulate
from pathlib import Path

import pytest
import tokenizers
from hypothesis import given, settings
from hypothesis import strategies as st

import tiny_tokenizers
from sapwood.stream import (
    ByteLevelDetokenizer,
    StopMatcher,
    WindowDetokenizer,
    byte_level_alphabet,
    make_detokenizer,
)

BYTE_LEVEL = tiny_tokenizers.byte_level_tokenizer()
GEMMA = tokenizers.Tokenizer.from_str(tiny_tokenizers.gemma_tokenizer_json())
TOKENIZERS = {"byte-level": BYTE_LEVEL, "gemma": GEMMA}


def pieces_of(tokenizer: tokenizers.Tokenizer, ids: Sequence[int]) -> list[str]:
    detokenizer = make_detokenizer(tokenizer)
    return [*(detokenizer.push(token) for token in ids), detokenizer.finish()]


def check_stream(tokenizer: tokenizers.Tokenizer, ids: Sequence[int]) -> None:
    whole = tokenizer.decode(list(ids), skip_special_tokens=True)
    pieces = pieces_of(tokenizer, ids)
    assert "".join(pieces) == whole
    # No piece was ever taken back or cut inside a character: all prefixes are prefixes.
    for prefix in accumulate(pieces):
        assert whole.startswith(prefix)


@pytest.mark.parametrize("name", TOKENIZERS)
@settings(deadline=None, max_examples=300)
@given(data=st.data())
def test_pieces_of_any_ids_join_to_one_decode(name: str, data: st.DataObject) -> None:
    tokenizer = TOKENIZERS[name]
    ids = data.draw(st.lists(st.integers(0, tokenizer.get_vocab_size() - 1), max_size=40))
    check_stream(tokenizer, ids)


@pytest.mark.parametrize("name", TOKENIZERS)
@settings(deadline=None, max_examples=200)
@given(text=st.text(max_size=60))
def test_pieces_of_any_text_join_to_one_decode(name: str, text: str) -> None:
    check_stream(TOKENIZERS[name], TOKENIZERS[name].encode(text, add_special_tokens=False).ids)


@settings(deadline=None)
@given(st.lists(st.integers(0, 255), max_size=30))
def test_runs_of_byte_tokens_join_to_one_decode(values: list[int]) -> None:
    names = (f"<0x{value:02X}>" for value in values)
    ids = [GEMMA.token_to_id(name) for name in names]
    check_stream(GEMMA, [*ids, GEMMA.token_to_id("the") or ids[0] if ids else 0, *ids])


@settings(deadline=None)
@given(st.lists(st.integers(0, 255), max_size=30))
def test_any_bytes_join_to_one_decode_in_byte_level_bpe(values: list[int]) -> None:
    letters = {byte: letter for letter, byte in byte_level_alphabet().items()}
    ids = [BYTE_LEVEL.token_to_id(letters[value]) for value in values]
    assert None not in ids
    check_stream(BYTE_LEVEL, ids)


def test_a_character_of_four_tokens_comes_when_it_is_whole() -> None:
    letters = {byte: letter for letter, byte in byte_level_alphabet().items()}
    ids = [BYTE_LEVEL.token_to_id(letters[byte]) for byte in "🌳".encode()]
    assert pieces_of(BYTE_LEVEL, ids) == ["", "", "", "🌳", ""]


def test_half_a_character_at_the_end_becomes_a_replacement_character_only_then() -> None:
    letters = {byte: letter for letter, byte in byte_level_alphabet().items()}
    ids = [BYTE_LEVEL.token_to_id(letters[byte]) for byte in "🌳".encode()[:2]]
    assert pieces_of(BYTE_LEVEL, ids) == ["", "", "\ufffd"]


def test_a_special_token_inside_a_character_changes_nothing() -> None:
    letters = {byte: letter for letter, byte in byte_level_alphabet().items()}
    first, second = (BYTE_LEVEL.token_to_id(letters[byte]) for byte in "é".encode())
    special = BYTE_LEVEL.token_to_id("<|im_end|>")
    check_stream(BYTE_LEVEL, [first, special, second])
    assert "".join(pieces_of(BYTE_LEVEL, [first, special, second])) == "é"


def test_the_detokenizer_fits_the_decoder() -> None:
    assert isinstance(make_detokenizer(BYTE_LEVEL), ByteLevelDetokenizer)
    assert isinstance(make_detokenizer(GEMMA), WindowDetokenizer)


def test_both_detokenizers_agree_where_both_apply() -> None:
    ids = BYTE_LEVEL.encode("Größe, naïve, 森林 🌳 tree").ids
    window, bytewise = WindowDetokenizer(BYTE_LEVEL), ByteLevelDetokenizer(BYTE_LEVEL)
    joined = ["".join([*map(each.push, ids), each.finish()]) for each in (window, bytewise)]
    assert joined[0] == joined[1] == "Größe, naïve, 森林 🌳 tree"


@settings(deadline=None, max_examples=60)
@given(data=st.data())
def test_pieces_of_the_real_tokenizer_join_to_one_decode(
    smollm2: Path, data: st.DataObject
) -> None:
    tokenizer = _real(smollm2)
    ids = data.draw(st.lists(st.integers(0, tokenizer.get_vocab_size() - 1), max_size=60))
    check_stream(tokenizer, ids)


_cache: dict[Path, tokenizers.Tokenizer] = {}


def _real(bundle: Path) -> tokenizers.Tokenizer:
    if bundle not in _cache:
        _cache[bundle] = tokenizers.Tokenizer.from_file(str(bundle / "tokenizer.json"))
    return _cache[bundle]


# ---- stop strings -------------------------------------------------------------------------------

STOPS = st.lists(st.text("abc", min_size=1, max_size=4), min_size=1, max_size=4)
PIECES = st.lists(st.text("abc", max_size=5), max_size=12)


def reference(text: str, stops: Sequence[str]) -> tuple[str, str | None]:
    """The text before the stop string that is complete first; of two, the longer."""
    for end in range(len(text) + 1):
        complete = [stop for stop in stops if text[:end].endswith(stop)]
        if complete:
            stop = max(complete, key=len)
            return text[: end - len(stop)], stop
    return text, None


@settings(deadline=None, max_examples=500)
@given(PIECES, STOPS)
def test_stop_strings_are_found_however_the_text_is_cut(
    pieces: list[str], stops: list[str]
) -> None:
    matcher = StopMatcher(stops)
    given_out = "".join(matcher.push(piece) for piece in pieces) + matcher.finish()
    assert (given_out, matcher.matched) == reference("".join(pieces), stops)


@settings(deadline=None, max_examples=500)
@given(PIECES, STOPS)
def test_text_is_held_only_while_it_may_still_become_a_stop_string(
    pieces: list[str], stops: list[str]
) -> None:
    matcher = StopMatcher(stops)
    text = given_out = ""
    for piece in pieces:
        text += piece
        given_out += matcher.push(piece)
        if matcher.matched is not None:
            return
        held = text[len(given_out) :]
        assert text == given_out + held
        assert not held or any(stop.startswith(held) and stop != held for stop in stops)
        longer = range(len(held) + 1, min(len(text), 4) + 1)
        assert not any(s.startswith(text[-n:]) and len(s) > n for n in longer for s in stops)


def test_nothing_comes_after_a_stop_string() -> None:
    matcher = StopMatcher(["END"])
    assert matcher.push("a EN") == "a "
    assert matcher.push("D b") == ""
    assert matcher.push("c") == ""
    assert matcher.finish() == ""
    assert matcher.matched == "END"


def test_an_empty_stop_string_is_refused() -> None:
    with pytest.raises(ValueError, match="empty"):
        StopMatcher(["a", ""])
