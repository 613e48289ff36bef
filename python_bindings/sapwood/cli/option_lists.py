"""The lists of ``sapwood/options.py`` on the command line."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Collection
from enum import Enum
from typing import Annotated, Any, get_type_hints, is_typeddict

import typer

from sapwood.options import Option, options_of


def with_options(
    *, without: Collection[str] = (), **defaults: Any
) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """Turns a command's parameters that are lists of options into one parameter an option.

    A parameter ``answer: AnswerOptions`` becomes ``--temperature``, ``--seed``, ...; the command
    gets the dictionary. A name that two lists share is one option, told as the first tells it, and
    goes to both. ``without``: what the command has no use for. ``defaults``: what it has others of.
    """

    def expand(command: Callable[..., None]) -> Callable[..., None]:
        hints = get_type_hints(command, include_extras=True)
        lists = {name: options_of(hint) for name, hint in hints.items() if is_typeddict(hint)}
        unknown = {*without, *defaults} - {name for listed in lists.values() for name in listed}
        if unknown:
            raise ValueError(f"no option of the command's lists: {', '.join(sorted(unknown))}")
        parameters: dict[str, inspect.Parameter] = {}
        for parameter in inspect.signature(command).parameters.values():
            listed = lists.get(parameter.name)
            if listed is None:
                parameters[parameter.name] = parameter.replace(
                    kind=inspect.Parameter.KEYWORD_ONLY, annotation=hints[parameter.name]
                )
                continue
            for name, (kind, option) in listed.items():
                if name not in without and name not in parameters:
                    default = defaults.get(name, option.default)
                    parameters[name] = _parameter(name, kind, option, default)

        @functools.wraps(command)
        def run(**given: Any) -> None:
            values = {k: v.value if isinstance(v, Enum) else v for k, v in given.items()}
            own = {name: given[name] for name in given if name in hints}
            for name, listed in lists.items():
                own[name] = {member: values[member] for member in listed if member in values}
            command(**own)

        run.__signature__ = inspect.Signature(list(parameters.values()))  # type: ignore[attr-defined]
        run.__annotations__ = {name: each.annotation for name, each in parameters.items()}
        return run

    return expand


def _parameter(name: str, kind: Any, option: Option, default: Any) -> inspect.Parameter:
    if option.command_type is not None:
        kind = option.command_type
    if option.choices:
        values = Enum(name, {choice: choice for choice in option.choices}, type=str)  # type: ignore[misc]
        kind = values | None if default is None else values
        default = None if default is None else values(default)
    # Without a second name, a switch would get a --no- of its own.
    flags = [f"--{name.replace('_', '-')}"]
    described = typer.Option(
        *flags,
        min=option.minimum,
        max=option.maximum,
        help=option.help,
        show_default=default is not None and default is not False,
    )
    return inspect.Parameter(
        name, inspect.Parameter.KEYWORD_ONLY, default=default, annotation=Annotated[kind, described]
    )
