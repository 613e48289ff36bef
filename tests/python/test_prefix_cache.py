"""Prefixes that sessions and conversations share, through the bindings."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from conftest import Sapwood, refused
from sapwood import _runtime
from sapwood.engine import Engine
from sapwood.errors import SapwoodError
from sapwood.hosts import open_model
from sapwood.options import MODES

PREFIX = [5, 9, 7, 3, 8, 6, 5, 9, 7, 3, 8, 6, 4, 4, 5, 9]


@pytest.fixture(scope="module")
def model(tiny_bundle: Path) -> _runtime.Model:
    return open_model(tiny_bundle, host="native", threads=1)


def session(model: _runtime.Model, **options: Any) -> _runtime.Session:
    return _runtime.Session.create(model, **{"context_length": 64, "learn_costs": False, **options})


def answer(session: _runtime.Session, prompt: list[int], mode: str, heat: float) -> list[int]:
    sampling = _runtime.SamplingOptions(temperature=heat, seed=3)
    session.start(prompt, mode=mode, sampling=sampling, max_new_tokens=16)
    ids: list[int] = []
    while tokens := session.step():
        ids += tokens
    return ids


def test_a_trie_gives_stored_prefixes_and_evicts_the_longest_unused() -> None:
    trie = _runtime.PrefixTrie(16)
    assert trie.acquire([1, 2]) == (-1, [])
    first, slots, needless = trie.extend(-1, [1, 2, 3], [10, 11, 12])
    assert (slots, needless, trie.depth(first)) == ([10, 11, 12], [], 3)
    second, known = trie.acquire([1, 2, 4])
    assert known == [10, 11]
    second, slots, needless = trie.extend(second, [3, 5], [13, 14])
    assert (slots, needless) == ([12, 14], [13])
    assert (trie.stored, trie.references(first), trie.evictable) == (4, 1, 0)
    trie.release(second)
    assert trie.shorten(first, 1) == 10
    assert trie.evict(2) == [14, 12]
    assert trie.evict(9) == [11]
    assert trie.stored == 1
    with pytest.raises(SapwoodError, match="slot"):
        trie.extend(-1, [1, 2], [3])


@pytest.mark.parametrize("mode", MODES)
@pytest.mark.parametrize("heat", [0.0, 0.9])
def test_sessions_that_share_a_cache_say_what_others_say(
    model: _runtime.Model, mode: str, heat: float
) -> None:
    first = session(model)
    answer(first, [*PREFIX, 1], mode, heat)
    second = session(model, cache=first.cache)
    expected = answer(session(model), [*PREFIX, 2, 3], mode, heat)
    assert answer(second, [*PREFIX, 2, 3], mode, heat) == expected
    assert second.stats.reused_prompt_tokens == len(PREFIX)
    cache = first.cache
    assert cache.is_whole
    del first, second
    assert cache.taken == cache.stored > 2 * len(PREFIX)
    cache.forget()
    assert cache.taken == 0


def test_slots_that_others_hold_are_named_and_given_back(model: _runtime.Model) -> None:
    first = session(model, max_tree_nodes=16)  # a cache of 80
    first.start([7] * 60, mode="plain", max_new_tokens=4)
    second = session(model, max_tree_nodes=16, cache=first.cache)
    with pytest.raises(SapwoodError, match=r"of 80 .* other sessions"):
        second.start(PREFIX * 3, mode="plain", max_new_tokens=4)
    assert first.cache.taken - first.cache.stored == 0
    del first
    assert len(answer(second, PREFIX * 3, "plain", 0.0)) == 16
    with pytest.raises(SapwoodError, match="at least 80"):
        session(model, max_tree_nodes=16, kv_slots=70)


def test_conversations_of_an_engine_take_turns(tiny_bundle: Path) -> None:
    engine = Engine(tiny_bundle, threads=1, drafter="mix")
    prompts = ["a b c a b c", "c b a d e f g"]

    def reused(prompt: str) -> int:
        list(engine.generate(prompt, max_new_tokens=4))
        return engine.stats.reused_prompt_tokens

    assert reused(prompts[0]) == 0
    reused(prompts[1])
    sizes = [len(engine.encode(prompt)) for prompt in prompts]
    assert [reused(prompt) for prompt in prompts] == [size - 1 for size in sizes]
    engine.forget()
    assert reused(prompts[0]) == 0
    forgetful = Engine(tiny_bundle, threads=1, forget_texts=True, kv_slots=4000)
    assert forgetful.session.cache.slots >= 4000
    for prompt in (*prompts, *prompts):
        list(forgetful.generate(prompt, max_new_tokens=4))
        assert forgetful.stats.reused_prompt_tokens < min(sizes) - 1


def test_bench_memory_reports_every_figure(sapwood: Sapwood, tiny_bundle: Path) -> None:
    result = sapwood(
        *("bench", "memory", tiny_bundle, "--rounds", "200", "--repeats", "2", "--prefix", "100"),
        *("--threads", "1", "--json"),
    )
    assert result.returncode == 0, result.stderr
    report = json.loads(result.stdout)
    results = {(each["what"], each["threads"]): each for each in report["results"]}
    for what in (
        "allocate 1 KV slot",
        "free 32 KV slots",
        "pool: acquire a handle",
        "first token, 100 shared tokens",
    ):
        assert 0 <= results[what, 1]["p50_ns"] <= results[what, 1]["p99_ns"]
    assert ("allocate 8 KV slots", 4) in results
    for how in ("parked", "spinning", "spinning for 1 ms"):
        assert (f"timeline: signal to wake, {how}", 2) in results
    assert ("floor: a bare futex to wake", 2) in results
    assert report["hidden_draft_share"] == 0  # there is no draft
    assert report["shared_prefix"]["reused_tokens"] == 100
    assert report["allocations_per_token"] == 0


def test_bench_memory_needs_a_context_that_holds_the_prefix(
    sapwood: Sapwood, tiny_bundle: Path
) -> None:
    refused(sapwood("bench", "memory", tiny_bundle, "--rounds", "100"), "context-length")
