"""Every mode on every host gives the tokens of plain decoding: the promise of the project."""

from __future__ import annotations

import os
from pathlib import Path

import pytest

from conftest import spec_bench_prompts
from promise import ALL_PROMPTS, ALL_TOKENS, QUICK_PROMPTS, QUICK_TOKENS, check_promise
from sapwood.engine import Engine
from sapwood.errors import SapwoodError
from sapwood.hosts import HOST_STATUS
from sapwood.options import HOSTS

# What a host runs.
GRAPHS = {"onnxruntime": "target.onnx", "executorch": "target.pte"}


def host_or_skip(bundle: Path, host: str) -> Engine:
    if host in HOST_STATUS:
        missing = HOST_STATUS[host]()
        if missing is not None:
            pytest.skip(missing)
        if not (bundle / GRAPHS[host]).is_file():
            pytest.skip(f"{bundle} was exported without {GRAPHS[host]}")
    return Engine(bundle, host=host)


@pytest.fixture(scope="module")
def engines(smollm2: Path) -> dict[str, Engine]:
    return {host: host_or_skip(smollm2, host) for host in HOSTS}


def test_every_mode_and_host_gives_the_same_greedy_tokens(engines: dict[str, Engine]) -> None:
    check_promise(engines, spec_bench_prompts(QUICK_PROMPTS), QUICK_TOKENS)


def test_every_mode_and_host_gives_the_same_sampled_tokens(engines: dict[str, Engine]) -> None:
    check_promise(
        engines,
        ["Invent three names for a boat.", "Repeat after me: a b c d, a b c d, a b c"],
        QUICK_TOKENS,
        temperature=0.8,
        top_p=0.95,
        seed=5,
    )


def test_the_shipped_draft_guesses_alike_on_every_host(engines: dict[str, Engine]) -> None:
    counts = {}
    for host, engine in engines.items():
        assert engine.drafting.trained is not None
        engine.forget()
        for _ in engine.generate("Why is the sky blue?", mode="chain", max_new_tokens=QUICK_TOKENS):
            pass
        stats = engine.stats
        counts[host] = (stats.steps, stats.drafted_tokens, stats.accepted_tokens)
    assert len(set(counts.values())) == 1, counts
    assert counts["native"][2] > 0


def test_a_prompt_longer_than_one_pass_gives_the_same_tokens(engines: dict[str, Engine]) -> None:
    check_promise(engines, ["Repeat: " + "the quick brown fox, " * 80], 24)


def test_every_mode_gives_the_same_tokens_with_an_int8_cache(smollm2: Path) -> None:
    engines = {
        f"{threads} threads": Engine(smollm2, kv="int8", threads=threads) for threads in (1, 2)
    }
    check_promise(engines, spec_bench_prompts(QUICK_PROMPTS), QUICK_TOKENS)
    check_promise(
        engines, ["Invent three names for a boat."], QUICK_TOKENS, temperature=0.8, seed=5
    )
    check_promise(engines, ["Repeat: " + "the quick brown fox, " * 80], 24)


def test_onnx_runtime_refuses_an_int8_cache_in_one_line(smollm2: Path) -> None:
    host_or_skip(smollm2, "onnxruntime")
    with pytest.raises(SapwoodError, match=r"^the host onnxruntime takes no int8 KV cache; use "):
        Engine(smollm2, host="onnxruntime", kv="int8")


@pytest.mark.parametrize("threads", [1, 2, 3])
def test_the_number_of_threads_changes_nothing(smollm2: Path, threads: int) -> None:
    prompt = "Describe the sea in one sentence."
    # The text: how it falls into pieces is how many tokens each step found, a matter of timing.
    expected = "".join(Engine(smollm2, threads=4).generate(prompt, max_new_tokens=24))
    assert "".join(Engine(smollm2, threads=threads).generate(prompt, max_new_tokens=24)) == expected


@pytest.mark.slow
def test_all_24_prompts_give_the_same_greedy_tokens(engines: dict[str, Engine]) -> None:
    prompts = spec_bench_prompts(int(os.environ.get("SAPWOOD_TEST_PROMPTS", ALL_PROMPTS)))
    check_promise(engines, prompts, ALL_TOKENS)
