"""Chat templates render as Hugging Face's do, or name the line that failed."""

from __future__ import annotations

from typing import Any

import pytest

from sapwood.chat_template import ChatTemplate
from sapwood.errors import SapwoodError

TURNS: list[dict[str, Any]] = [
    {"role": "system", "content": "Be <brief> & kind."},
    {"role": "user", "content": "  What is a tree?\n"},
    {"role": "assistant", "content": "A plant."},
    {"role": "user", "content": 'Say "yes"; 森 🌳'},
]

SOURCES = {
    "chatml": (
        "{% for message in messages %}\n"
        "    {% if loop.first and messages[0]['role'] != 'system' %}\n"
        "<|im_start|>system\nYou help.<|im_end|>\n"
        "    {% endif %}\n"
        "<|im_start|>{{ message['role'] }}\n{{ message['content'] | trim }}<|im_end|>\n"
        "{% endfor %}\n"
        "{% if add_generation_prompt %}<|im_start|>assistant\n{% endif %}"
    ),
    "namespace": (
        "{%- set ns = namespace(system='') -%}\n"
        "{%- for m in messages if m.role == 'system' %}{% set ns.system = m.content %}"
        "{% endfor -%}\n"
        "{{- bos_token + ns.system }}{{ eos_token }}"
    ),
    "tojson": "{{ messages | tojson }}\n{{ messages | tojson(indent=2) }}",
    "loop controls": "{% for m in messages %}{% if loop.index == 2 %}{% break %}{% endif %}"
    "{{ m.content }}{% endfor %}",
    "generation block": "{% for m in messages %}{% if m.role == 'assistant' %}"
    "{% generation %}{{ m.content }}{% endgeneration %}{% else %}{{ m.content }}{% endif %}"
    "{% endfor %}",
    "strings": "{{ messages[1].content.strip().split(' ')[0] }}|{{ messages[0].content[3:8] }}"
    "|{{ 'x' if tools is none else 'y' }}|{{ undefined_name }}",
    "the date": "{{ strftime_now('%Y-%m') }}",
}


@pytest.mark.parametrize("name", SOURCES)
def test_a_template_renders_as_hugging_faces(name: str) -> None:
    transformers = pytest.importorskip("transformers")
    import tiny_tokenizers

    theirs = transformers.PreTrainedTokenizerFast(
        tokenizer_object=tiny_tokenizers.byte_level_tokenizer(),
        bos_token="<|im_start|>",
        eos_token="<|im_end|>",
        chat_template=SOURCES[name],
    )
    expected = theirs.apply_chat_template(TURNS, tokenize=False, add_generation_prompt=True)
    ours = ChatTemplate(SOURCES[name])
    assert ours.render(TURNS, bos_token="<|im_start|>", eos_token="<|im_end|>") == expected


def test_tools_and_documents_reach_the_template_and_are_none_without() -> None:
    template = ChatTemplate(
        "{{ tools | tojson if tools is not none else '-' }}"
        "{{ documents | length if documents is not none else '-' }}{{ enable_thinking }}"
    )
    tools = [{"type": "function", "function": {"name": "look_up"}}]
    assert template.render([]) == "--"
    assert (
        template.render([], tools=tools, documents=["a", "b"], enable_thinking=False)
        == '[{"type": "function", "function": {"name": "look_up"}}]2False'
    )


def test_a_syntax_error_names_its_line() -> None:
    with pytest.raises(SapwoodError, match=r"chat_template\.jinja, line 2: "):
        ChatTemplate("fine\n{% if %}\n")


def test_an_exception_that_a_template_raises_names_its_line() -> None:
    template = ChatTemplate("one\ntwo\n{{ raise_exception('roles must alternate') }}\n")
    with pytest.raises(SapwoodError, match="line 3: roles must alternate"):
        template.render([])


def test_an_error_inside_an_expression_names_its_line() -> None:
    template = ChatTemplate("one\n{{ messages[0].content + 1 }}\n")
    with pytest.raises(SapwoodError, match="line 2: "):
        template.render([{"role": "user", "content": "x"}])


@pytest.mark.parametrize(
    "source",
    [
        "{{ messages.__class__.__mro__[1].__subclasses__() }}",
        "{{ messages.append(1) }}",
        "{{ strftime_now.__globals__['json'] }}",
    ],
)
def test_a_template_cannot_reach_out_of_its_sandbox(source: str) -> None:
    with pytest.raises(SapwoodError, match="line 1: "):
        ChatTemplate(source).render([])
