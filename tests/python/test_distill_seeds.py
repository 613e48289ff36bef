"""Seeds of the data that a target writes: balanced, never twice, and none of the evaluation's."""

from __future__ import annotations

import json
import random
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

import pytest

from conftest import SHARED
from sapwood_export.distill.seeds import PASSAGE, Seed, fill
from sapwood_export.distill.seeds_mix import CATEGORIES, FREE, MIX, SeedStream

BANKS = {"animal": ("owl", "owl"), "pair": ("{animal} and {animal}",), "job": ("chef", "nurse")}


def texts_of(seed: Seed) -> Iterator[str]:
    yield from (seed.opening, seed.system or "", seed.passage or "", *seed.follow_ups)


def some_seeds(shards: int) -> list[Seed]:
    stream = SeedStream(0)
    return [seed for _ in range(shards) for seed in stream.next_shard()]


def test_slots_are_filled_to_any_depth_and_articles_fit() -> None:
    filled = fill("A {animal}, a {job}, {pair}, {3-3}.", BANKS, random.Random(0), {})
    assert re.fullmatch(r"An owl, a (chef|nurse), owl and owl, 3\.", filled)


def test_slots_of_one_label_are_filled_alike() -> None:
    for number in range(20):
        labelled: dict[str, str] = {}
        text = fill("{0-99.n} {job.a}", BANKS, random.Random(number), labelled)
        assert fill("{0-99.n} {job.a}", BANKS, random.Random(-number), labelled) == text


def test_a_bank_that_is_not_there_is_an_error() -> None:
    with pytest.raises(KeyError):
        fill("{nothing}", BANKS, random.Random(0), {})


def test_every_shard_has_every_category_in_its_share() -> None:
    stream = SeedStream(3)
    for _ in range(3):
        assert Counter(seed.category for seed in stream.next_shard()) == Counter(MIX)
    assert set(CATEGORIES) == set(MIX)


def test_no_opening_comes_twice() -> None:
    openings = [
        (seed.category, seed.opening, seed.system, seed.passage)
        for seed in some_seeds(30)
        if seed.category != FREE
    ]
    assert len(openings) == len(set(openings))


def test_a_shard_is_made_of_its_seed_and_number_alone() -> None:
    first, again, other = SeedStream(5), SeedStream(5), SeedStream(6)
    assert [first.next_shard() for _ in range(3)] == [again.next_shard() for _ in range(3)]
    assert SeedStream(5).next_shard() != other.next_shard()


def test_no_slot_is_left_open_and_passages_have_a_place() -> None:
    for seed in some_seeds(10):
        for text in texts_of(seed):
            assert not re.search(r"\{([a-z_]+|\d+-\d+)(\.[a-z]+)?\}", text), text
        wanted = seed.passage is not None
        assert (PASSAGE in seed.opening + (seed.system or "")) == wanted


def strings(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for item in value.values():
            yield from strings(item)
    elif isinstance(value, list):
        for item in value:
            yield from strings(item)


def words(text: str) -> list[str]:
    return re.findall(r"\w+", text.lower())


def grams(text: str, length: int = 7) -> set[tuple[str, ...]]:
    found = words(text)
    return {tuple(found[i : i + length]) for i in range(len(found) - length + 1)}


def test_no_prompt_of_the_evaluation_is_among_the_seeds() -> None:
    files = sorted((SHARED / "data").glob("*.jsonl"))
    if not files:
        pytest.skip(f"{SHARED / 'data'} is not there")
    prompts = [
        text
        for file in files
        for line in file.read_text(encoding="utf-8").splitlines()
        for text in strings(json.loads(line))
    ]
    evaluation = set().union(*map(grams, prompts))
    lines = {tuple(words(line)) for text in prompts for line in text.splitlines()}
    lines = {line for line in lines if len(line) >= 4}
    assert len(evaluation) > 1000
    assert len(lines) > 100
    for seed in some_seeds(20):
        for text in texts_of(seed):
            assert not grams(text) & evaluation, text
            assert not {tuple(words(line)) for line in text.splitlines()} & lines, text
