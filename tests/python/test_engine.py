"""The Python face: answers, options, statistics, conversations."""

from __future__ import annotations

import threading
import time
from pathlib import Path
from typing import Any

import pytest

import sapwood
from sapwood.engine import Engine
from sapwood.errors import SapwoodError
from sapwood.generation import run_interruptibly
from sapwood.options import MODES

PROMPT = "Count from one to ten, then count from one to ten again."


@pytest.fixture(scope="module")
def engine(smollm2: Path) -> Engine:
    return Engine(smollm2, context_length=512)


@pytest.fixture(scope="module")
def tiny(tiny_bundle: Path) -> Engine:
    return Engine(tiny_bundle, threads=1)


def answer(engine: Engine, prompt: str = PROMPT, **options: Any) -> sapwood.Generation:
    generation = engine.generate(prompt, **{"max_new_tokens": 48, **options})
    assert "".join(generation) == generation.text
    return generation


def test_pieces_join_to_the_text_which_is_one_decode_of_the_ids(engine: Engine) -> None:
    generation = answer(engine)
    assert generation.text == engine.tokenizer.decode(generation.token_ids)
    assert generation.text.strip()


@pytest.mark.parametrize("options", [{}, {"temperature": 0.8, "seed": 7, "top_p": 0.95}])
def test_every_mode_gives_the_same_answer_counts_and_reason(
    engine: Engine, options: dict[str, Any]
) -> None:
    answers = {mode: answer(engine, mode=mode, **options) for mode in MODES}
    plain = answers["plain"]
    for mode, other in answers.items():
        assert other.token_ids == plain.token_ids, mode
        assert other.text == plain.text
        assert other.stop_reason == plain.stop_reason
        assert other.stats.emitted_tokens == plain.stats.emitted_tokens
        assert other.stats.mode == mode


def test_a_seed_repeats_an_answer_and_another_changes_it(engine: Engine) -> None:
    texts = [answer(engine, temperature=1.0, seed=seed).text for seed in (1, 1, 2, 3)]
    assert texts[0] == texts[1]
    assert len(set(texts[1:])) > 1


def test_the_limit_counts_emitted_tokens_only(engine: Engine) -> None:
    for mode in MODES:
        for limit in (1, 2, 7):
            generation = answer(engine, mode=mode, max_new_tokens=limit)
            assert len(generation.token_ids) == limit
            assert generation.stop_reason == "length"
            assert generation.stats.emitted_tokens == limit


def test_an_end_of_sequence_token_ends_an_answer_in_every_mode(engine: Engine) -> None:
    for mode in MODES:
        generation = answer(engine, "Say only: yes", mode=mode, max_new_tokens=200)
        assert generation.stop_reason == "eos"
        assert generation.token_ids[-1] in engine.tokenizer.eos_token_ids
        assert not set(generation.token_ids[:-1]) & set(engine.tokenizer.eos_token_ids)
        assert "<|im_end|>" not in generation.text


def test_a_stop_string_over_several_tokens_cuts_the_answer_in_every_mode(engine: Engine) -> None:
    whole = answer(engine, mode="plain", max_new_tokens=60).text
    # From the middle of one word to the middle of another: it begins and ends inside tokens.
    begin = len(whole) // 2
    stop = whole[begin : begin + 9]
    begin = whole.index(stop)
    expected_ids = None
    for mode in MODES:
        generation = answer(engine, mode=mode, max_new_tokens=60, stop=stop)
        assert generation.text == whole[:begin]
        assert generation.stop_reason == "stop"
        assert generation.stop_string == stop
        assert generation.stats.emitted_tokens == len(generation.token_ids)
        assert stop in engine.tokenizer.decode(generation.token_ids)
        assert stop not in engine.tokenizer.decode(generation.token_ids[:-1])
        expected_ids = expected_ids or generation.token_ids
        assert generation.token_ids == expected_ids


def test_a_stop_string_that_never_comes_changes_nothing(engine: Engine) -> None:
    plain = answer(engine)
    assert answer(engine, stop=["\x00never", "qqqq"]).text == plain.text


def test_the_context_ends_an_answer_in_every_mode(tiny_bundle: Path) -> None:
    engine = Engine(tiny_bundle, threads=1, context_length=64)
    lengths = set()
    for mode in MODES:
        generation = answer(engine, "a b c a b c a b c", mode=mode, max_new_tokens=500, raw=True)
        if generation.stop_reason == "context":
            assert len(generation.prompt_ids) + len(generation.token_ids) == 64
        lengths.add((len(generation.token_ids), generation.stop_reason))
    assert len(lengths) == 1


def test_a_prompt_longer_than_the_context_is_refused_and_the_engine_goes_on(engine: Engine) -> None:
    before = answer(engine).text
    with pytest.raises(SapwoodError, match=r"512"):
        engine.generate("tree " * 600)
    assert answer(engine).text == before


def test_a_raw_prompt_is_continued_without_template(engine: Engine) -> None:
    generation = answer(engine, "One, two, three,", raw=True, max_new_tokens=4)
    assert generation.prompt_ids == engine.tokenizer.encode("One, two, three,")
    assert "four" in generation.text


def test_a_system_message_comes_first(engine: Engine) -> None:
    generation = answer(engine, "Hi", system="You are a tree.", max_new_tokens=1)
    text = engine.tokenizer.decode(generation.prompt_ids)
    assert text.index("You are a tree.") < text.index("Hi")


def test_a_newer_answer_ends_the_older_one(engine: Engine) -> None:
    older = engine.generate(PROMPT, max_new_tokens=48)
    first = next(older)
    newer = answer(engine, "Name a tree.", max_new_tokens=4)
    assert list(older) == []
    assert older.text == first
    assert older.stop_reason == "stopped"
    assert newer.stats.emitted_tokens == len(newer.token_ids)


def test_an_answer_that_is_closed_keeps_what_it_had(engine: Engine) -> None:
    with engine.generate(PROMPT, max_new_tokens=48) as generation:
        first = next(generation)
    assert generation.text == first
    assert generation.stop_reason == "stopped"
    assert list(generation) == []
    assert generation.stats.emitted_tokens == len(generation.token_ids)


def test_statistics_add_up(engine: Engine) -> None:
    engine.forget()
    stats = answer(engine, mode="chain").stats
    assert stats is engine.stats or stats == engine.stats
    assert stats.host == "native"
    assert stats.reused_prompt_tokens == 0
    assert stats.emitted_tokens == 48
    assert stats.steps >= 1
    assert stats.mean_accepted_length == pytest.approx(stats.emitted_tokens / stats.steps)
    assert stats.accepted_tokens <= stats.drafted_tokens
    assert stats.rows_verified == stats.steps + stats.drafted_tokens
    assert stats.tokens_per_second == pytest.approx(stats.emitted_tokens / stats.decode_seconds)
    assert stats.first_token_seconds > 0
    plain = answer(engine, mode="plain").stats
    assert plain.steps == plain.emitted_tokens
    assert plain.mean_accepted_length == 1
    assert plain.drafted_tokens == 0


def test_a_conversation_computes_only_what_is_new(engine: Engine) -> None:
    chat = engine.chat(system="You are brief.")
    first = "".join(chat.say("Name a tree.", max_new_tokens=24))
    second = "".join(chat.say("Another one.", max_new_tokens=24))
    assert [m["role"] for m in chat.messages] == ["system", *["user", "assistant"] * 2]
    assert chat.messages[2]["content"] == first
    assert chat.messages[4]["content"] == second
    assert engine.stats.reused_prompt_tokens > 0
    chat.clear()
    assert [m["role"] for m in chat.messages] == ["system"]


def test_a_conversation_answers_as_a_fresh_engine_would(engine: Engine) -> None:
    chat = engine.chat()
    "".join(chat.say("Name a tree.", max_new_tokens=24))
    second = "".join(chat.say("Another one.", max_new_tokens=24))
    engine.forget()
    fresh = engine.generate([*chat.messages[:3]], max_new_tokens=24)
    assert "".join(fresh) == second
    assert engine.stats.reused_prompt_tokens == 0


def test_two_engines_do_not_disturb_each_other(engine: Engine, smollm2: Path) -> None:
    other = Engine(smollm2, threads=1, context_length=256)
    expected = answer(engine).text
    mine = engine.generate(PROMPT, max_new_tokens=48)
    theirs = other.generate("Name a tree.", max_new_tokens=48)
    pieces = ""
    for piece in mine:
        pieces += piece
        next(theirs, "")
    assert pieces == expected


@pytest.mark.parametrize(
    ("options", "named"),
    [
        ({"temperature": -1.0}, "temperature"),
        ({"temperature": float("nan")}, "temperature"),
        ({"top_p": 1.5}, "top_p"),
        ({"top_k": -1}, "top_k"),
        ({"min_p": 2.0}, "min_p"),
        ({"repetition_penalty": 0.0}, "repetition_penalty"),
        ({"max_new_tokens": 0}, "max_new_tokens"),
        ({"mode": "fast"}, "mode"),
        ({"stop": ""}, "stop"),
    ],
)
def test_an_option_out_of_range_is_named(tiny: Engine, options: dict[str, Any], named: str) -> None:
    with pytest.raises(SapwoodError, match=named.replace("_", "[_ -]")):
        tiny.generate("hello", **options)


def test_an_engine_option_out_of_range_is_named(tiny_bundle: Path) -> None:
    with pytest.raises(SapwoodError, match="threads"):
        Engine(tiny_bundle, threads=0)
    with pytest.raises(SapwoodError, match="host"):
        Engine(tiny_bundle, host="cloud")
    with pytest.raises(SapwoodError, match="mode"):
        Engine(tiny_bundle, mode="fast")
    with pytest.raises(SapwoodError, match="context_length"):
        Engine(tiny_bundle, context_length=0)


def test_statistics_before_the_first_answer_are_refused(tiny_bundle: Path) -> None:
    with pytest.raises(SapwoodError, match="nothing has been generated"):
        _ = Engine(tiny_bundle, threads=1).stats


def test_an_interrupt_while_the_prompt_is_read_cancels_it() -> None:
    cancelled = threading.Event()

    def interrupted_work() -> None:
        import _thread

        _thread.interrupt_main()
        assert cancelled.wait(10)

    with pytest.raises(KeyboardInterrupt):
        run_interruptibly(interrupted_work, cancelled.set)
    assert cancelled.is_set()


def test_an_error_while_the_prompt_is_read_comes_through() -> None:
    def failing() -> None:
        raise SapwoodError("no slot")

    with pytest.raises(SapwoodError, match="no slot"):
        run_interruptibly(failing, lambda: None)


def test_cancel_from_another_thread_ends_an_answer(engine: Engine) -> None:
    generation = engine.generate(PROMPT, max_new_tokens=400, stop="\x00")
    next(generation)
    thread = threading.Thread(target=lambda: (time.sleep(0.01), engine.session.cancel()))
    thread.start()
    for _ in generation:
        time.sleep(0.001)
    thread.join()
    assert generation.stop_reason in ("cancelled", "eos")


def test_errors_can_be_imported_without_the_compiled_module() -> None:
    import subprocess
    import sys

    code = (
        "import sys; sys.modules['sapwood._runtime'] = None\n"
        "import sapwood, sapwood.errors, sapwood.paths, sapwood.stream, sapwood.tokenizer\n"
        "assert 'Engine' in dir(sapwood) and sapwood.SapwoodError"
    )
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
