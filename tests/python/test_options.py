"""One list of options: the Python face, its help and the commands all take theirs from it."""

from __future__ import annotations

import inspect
import re

import pytest

from conftest import Sapwood
from sapwood.cli.option_lists import with_options
from sapwood.engine import Chat, Engine
from sapwood.errors import SapwoodError
from sapwood.options import AnswerOptions, EngineOptions, HostOptions, completed, options_of


def test_missing_options_get_their_defaults_and_given_ones_stay() -> None:
    options = completed(AnswerOptions, {"top_k": 7, "seed": 3})
    assert set(options) == set(options_of(AnswerOptions))
    assert (options["top_k"], options["seed"], options["max_new_tokens"]) == (7, 3, 256)


def test_every_default_is_in_its_range() -> None:
    for listed in (EngineOptions, AnswerOptions):
        for name, (_, option) in options_of(listed).items():
            option.check(name, option.default)
            if option.minimum is not None and option.default is not None:
                assert option.minimum <= option.default


@pytest.mark.parametrize(
    ("name", "value", "message"),
    [
        ("max_new_tokens", 0, "max_new_tokens: must be at least 1, not 0"),
        ("top_p", 1.5, "top_p: must be at most 1, not 1.5"),
        ("temperature", float("nan"), "temperature: must be at least 0, not nan"),
        ("mode", "quick", "mode: must be one of plain, chain, fixed, dynamic, not 'quick'"),
    ],
)
def test_a_value_out_of_range_is_refused_by_name(name: str, value: object, message: str) -> None:
    with pytest.raises(SapwoodError, match=f"^{re.escape(message)}$"):
        completed(AnswerOptions, {name: value})  # type: ignore[misc]


def test_an_unknown_option_is_refused_with_those_there_are() -> None:
    with pytest.raises(TypeError, match=r"no option 'heat'; there are .*temperature"):
        completed(AnswerOptions, {"heat": 1})  # type: ignore[typeddict-unknown-key]


def test_help_shows_the_options_with_their_defaults() -> None:
    for function, listed in (
        (Engine.__init__, EngineOptions),
        (Engine.generate, AnswerOptions),
        (Chat.say, AnswerOptions),
    ):
        parameters = inspect.signature(function).parameters
        for name, (_, option) in options_of(listed).items():
            assert parameters[name].default == option.default


@pytest.mark.parametrize("command", ["generate", "chat", "bench suite", "bench decode", "tune"])
def test_commands_have_the_options_of_their_lists(sapwood: Sapwood, command: str) -> None:
    shown = sapwood(*command.split(), "--help", environment={"COLUMNS": "200"}).stdout
    listed = {*options_of(HostOptions)}
    if command != "tune":
        listed = {*options_of(EngineOptions), *options_of(AnswerOptions)}
    if command.startswith("bench"):
        listed -= {"mode", "host"}  # they take several
        listed -= {"stop"} if command == "bench suite" else set()
    for name in listed:
        assert f"--{name.replace('_', '-')} " in shown


def test_an_option_that_two_lists_share_goes_to_both_and_defaults_can_differ() -> None:
    taken: list[object] = []

    @with_options(max_new_tokens=512, without=("seed",))
    def command(*, engine: EngineOptions, answer: AnswerOptions) -> None:
        taken.extend([engine, answer])

    parameters = inspect.signature(command).parameters
    assert parameters["max_new_tokens"].default == 512
    assert "seed" not in parameters
    command(mode="chain", max_new_tokens=3)
    assert taken == [{"mode": "chain"}, {"mode": "chain", "max_new_tokens": 3}]


def test_a_command_cannot_name_an_option_that_its_lists_lack() -> None:
    with pytest.raises(ValueError, match="heat"):

        @with_options(heat=1)
        def command(*, engine: EngineOptions) -> None:
            del engine
