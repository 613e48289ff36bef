"""Chat templates: the Jinja dialect that Hugging Face's tokenizers use, in a sandbox.

The environment equals the one behind ``transformers``' ``apply_chat_template`` (blocks trimmed,
``raise_exception``, ``strftime_now``, a ``tojson`` that leaves characters alone, loop controls and
the ``generation`` block), so a template renders
to the same text. An error names the template's line.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping, Sequence
from datetime import datetime
from typing import Any

import jinja2
from jinja2 import nodes
from jinja2.ext import Extension, loopcontrols
from jinja2.parser import Parser
from jinja2.sandbox import ImmutableSandboxedEnvironment

from sapwood.errors import SapwoodError

Message = Mapping[str, Any]
"""One turn: ``{"role": "system" | "user" | "assistant" | ..., "content": str, ...}``."""


class _GenerationBlock(Extension):
    """``{% generation %} ... {% endgeneration %}`` marks the assistant's words for training.

    It changes nothing in the text.
    """

    tags = {"generation"}  # noqa: RUF012  (the base class says what it is)

    def parse(self, parser: Parser) -> nodes.Node:
        line = next(parser.stream).lineno
        body = parser.parse_statements(("name:endgeneration",), drop_needle=True)
        return nodes.Scope(body).set_lineno(line)


def _raise_exception(message: str) -> None:
    raise jinja2.TemplateError(message)


def _strftime_now(pattern: str) -> str:
    return datetime.now().strftime(pattern)


def _tojson(
    value: Any,
    ensure_ascii: bool = False,
    indent: int | None = None,
    separators: tuple[str, str] | None = None,
    sort_keys: bool = False,
) -> str:
    return json.dumps(
        value, ensure_ascii=ensure_ascii, indent=indent, separators=separators, sort_keys=sort_keys
    )


class ChatTemplate:
    """A compiled template.

    ``name`` is how errors call it. Raises SapwoodError if the source is not a template.
    """

    def __init__(self, source: str, *, name: str = "chat_template.jinja") -> None:
        self.source = source
        self.name = name
        environment = ImmutableSandboxedEnvironment(
            trim_blocks=True, lstrip_blocks=True, extensions=[_GenerationBlock, loopcontrols]
        )
        environment.filters["tojson"] = _tojson
        environment.globals["raise_exception"] = _raise_exception
        environment.globals["strftime_now"] = _strftime_now
        try:
            self._template = environment.from_string(source)
        except jinja2.TemplateSyntaxError as error:
            raise SapwoodError(
                f"{name}, line {error.lineno}: {error.message}; correct the template"
            ) from error

    def render(
        self,
        messages: Sequence[Message],
        *,
        bos_token: str = "",
        eos_token: str = "",
        add_generation_prompt: bool = True,
        **variables: Any,
    ) -> str:
        """The prompt text for these messages. Raises SapwoodError with the template's line."""
        try:
            return self._template.render(
                messages=messages,
                bos_token=bos_token,
                eos_token=eos_token,
                add_generation_prompt=add_generation_prompt,
                **{"tools": None, "documents": None, **variables},
            )
        except Exception as error:  # a template may do anything, and fail in any way
            where = f", line {line}" if (line := _template_line(error)) is not None else ""
            raise SapwoodError(
                f"{self.name}{where}: {_one_line(error)}; change the messages or the template"
            ) from error


def _template_line(error: BaseException) -> int | None:
    """The template's line that raised: jinja2 rewrites its frames to the template's own lines."""
    lines = [line for filename, line in _frames(error) if filename == "<template>"]
    return lines[-1] if lines else None


def _frames(error: BaseException) -> Iterator[tuple[str, int]]:
    trace = error.__traceback__
    while trace is not None:
        yield trace.tb_frame.f_code.co_filename, trace.tb_lineno
        trace = trace.tb_next


def _one_line(error: BaseException) -> str:
    text = " ".join(str(error).split())
    return text or type(error).__name__
