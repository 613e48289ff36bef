"""Chat templates render in the engine as they do in Python, and a person's markers stay text."""

from __future__ import annotations

import functools
import json
import random
from collections.abc import Callable
from typing import Any

import pytest

import tiny_tokenizers
from sapwood import _runtime
from sapwood.chat_template import ChatTemplate
from sapwood.errors import SapwoodError
from sapwood.tokenizer import Tokenizer

Messages = list[dict[str, Any]]

# The constructs that the templates of each family are made of, in templates of our own.
CHATML = """{% for message in messages %}{% if loop.first and messages[0]['role'] != 'system' %}\
{{ '<|im_start|>system
You help.<|im_end|>
' }}{% endif %}{{'<|im_start|>' + message['role'] + '
' + message['content'] + '<|im_end|>' + '
'}}{% endfor %}{% if add_generation_prompt %}{{ '<|im_start|>assistant
' }}{% endif %}"""
LLAMA = """{{- bos_token }}
{%- if not date_string is defined %}
    {%- if strftime_now is defined %}
        {%- set date_string = strftime_now("%d %b %Y") %}
    {%- endif %}
{%- endif %}
{#- The system's words come first -#}
{%- if messages[0]['role'] == 'system' %}
    {%- set system_message = messages[0]['content']|trim %}
    {%- set messages = messages[1:] %}
{%- else %}
    {%- set system_message = "" %}
{%- endif %}
{{- "<|start_header_id|>system<|end_header_id|>\\n\\n" }}
{%- if tools is not none %}
    {{- "Environment: ipython\\n" }}
    {%- for t in tools %}
        {{- t | tojson(indent=4) }}
        {{- "\\n\\n" }}
    {%- endfor %}
{%- endif %}
{{- "Today: " + date_string + "\\n\\n" }}
{{- system_message }}
{{- "<|eot_id|>" }}
{%- for message in messages %}
    {%- if not (message.role == 'ipython' or message.role == 'tool' or \
'tool_calls' in message) %}
        {{- '<|start_header_id|>' + message['role'] + '<|end_header_id|>\\n\\n' + \
message['content'] | trim + '<|eot_id|>' }}
    {%- elif 'tool_calls' in message %}
        {%- if not message.tool_calls|length == 1 %}
            {{- raise_exception("one tool call at a time") }}
        {%- endif %}
        {%- set call = message.tool_calls[0].function %}
        {{- '{"name": "' + call.name + '", "parameters": ' }}
        {{- call.arguments | tojson }}{{- "}" }}
    {%- elif message.role == "tool" or message.role == "ipython" %}
        {%- if message.content is mapping or message.content is iterable %}
            {{- message.content | tojson }}
        {%- else %}
            {{- message.content }}
        {%- endif %}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|start_header_id|>assistant<|end_header_id|>\\n\\n' }}
{%- endif %}
"""
QWEN = """{%- set ns = namespace(multi_step=true, last=messages|length - 1) %}
{%- for message in messages[::-1] %}
    {%- set index = (messages|length - 1) - loop.index0 %}
    {%- if ns.multi_step and message.role == "user" and message.content is string and \
not(message.content.startswith('<tool>') and message.content.endswith('</tool>')) %}
        {%- set ns.multi_step = false %}
        {%- set ns.last = index %}
    {%- endif %}
{%- endfor %}
{%- for message in messages %}
    {%- if (message.role == "user") or (message.role == "system" and not loop.first) %}
        {{- '<|im_start|>' + message.role + '\\n' + message.content + '<|im_end|>' + '\\n' }}
    {%- elif message.role == "assistant" %}
        {%- set content = message.content %}
        {%- set thought = '' %}
        {%- if message.thought is defined and message.thought is not none %}
            {%- set thought = message.thought %}
        {%- elif '</think>' in message.content %}
            {%- set content = message.content.split('</think>')[-1].lstrip('\\n') %}
            {%- set thought = message.content.split('</think>')[0].rstrip('\\n')\
.split('<think>')[-1].lstrip('\\n') %}
        {%- endif %}
        {%- if loop.index0 > ns.last and (loop.last or (not loop.last and thought)) %}
            {{- '<|im_start|>' + message.role + '\\n<think>\\n' + thought.strip('\\n') + \
'\\n</think>\\n\\n' + content.lstrip('\\n') }}
        {%- else %}
            {{- '<|im_start|>' + message.role + '\\n' + content }}
        {%- endif %}
        {{- '<|im_end|>\\n' }}
    {%- elif message.role == "tool" %}
        {%- if loop.first or (messages[loop.index0 - 1].role != "tool") %}
            {{- '<|im_start|>user' }}
        {%- endif %}
        {{- '\\n<tool>' ~ message.content ~ '</tool>' }}
        {%- if loop.last or (messages[loop.index0 + 1].role != "tool") %}{{- '<|im_end|>\\n' }}\
{%- endif %}
    {%- endif %}
{%- endfor %}
{%- if add_generation_prompt %}
    {{- '<|im_start|>assistant\\n' }}
    {%- if enable_thinking is defined and enable_thinking is false %}
        {{- '<think>\\n\\n</think>\\n\\n' }}
    {%- endif %}
{%- endif %}
"""
GEMMA = """{{ bos_token }}
{%- if messages[0]['role'] == 'system' -%}
    {%- if messages[0]['content'] is string -%}
        {%- set first_prefix = messages[0]['content'] + '

' -%}
    {%- endif -%}
    {%- set loop_messages = messages[1:] -%}
{%- else -%}
    {%- set first_prefix = "" -%}
    {%- set loop_messages = messages -%}
{%- endif -%}
{%- for message in loop_messages -%}
    {%- if (message['role'] == 'user') != (loop.index0 % 2 == 0) -%}
        {{ raise_exception("roles must alternate") }}
    {%- endif -%}
    {%- if (message['role'] == 'assistant') -%}
        {%- set role = "model" -%}
    {%- else -%}
        {%- set role = message['role'] -%}
    {%- endif -%}
    {{ '<start_of_turn>' + role + '
' + (first_prefix if loop.first else "") }}
    {%- if message['content'] is string -%}
        {{ message['content'] | trim }}
    {%- elif message['content'] is iterable -%}
        {%- for item in message['content'] -%}
            {%- if item['type'] == 'text' -%}{{ item['text'] | trim }}{%- endif -%}
        {%- endfor -%}
    {%- endif -%}
    {{ '<end_of_turn>
' }}
{%- endfor -%}
{%- if add_generation_prompt -%}
    {{'<start_of_turn>model
'}}
{%- endif -%}
"""
FAMILIES = {"chatml": CHATML, "llama": LLAMA, "qwen": QWEN, "gemma": GEMMA}

CONSTRUCTS = [
    "{% for m in messages %}\n  {% if loop.last %}\n  last\n  {% endif %}\n{% endfor %}\nend\n",
    "  {%+ if true %}  kept {% endif %}  \n\n{%- if true -%}  \n x \n {%- endif +%}\n y",
    "{# a #}\n  {#- b -#}  \nc {# d #} e\n",
    "{% macro hello(name, mark='!') %}[{{ name }}{{ mark }}]{% endmacro %}{{ hello('a') }}"
    "{{ hello('b', mark='?') }}{{ hello(name='c') }}",
    "{% for k, v in {'a': 1, 'b': [2, 3]}.items() %}{{ k }}={{ v | tojson }};{% endfor %}",
    "{{ 7 // 2 }} {{ -7 // 2 }} {{ -7 % 3 }} {{ 7 / 2 }} {{ 2 ** 5 }} {{ 1.5 + 1 }}",
    "{{ [1, 2, 3][::-1] | join('-') }} {{ 'h\xe9llo'[1:3] }} {{ 'abc'[-1] }} {{ (1, 2) | length }}",
    "{{ messages | map(attribute='role') | join(',') }} {{ messages | selectattr('role', 'equalto',"
    " 'user') | list | length }}",
    "{{ missing }}|{{ missing | default('d') }}|{{ '' | default('e', true) }}"
    "{{ missing is defined }}",
    "{% set x %}a{{ 1 }}b{% endset %}{{ x | upper }}",
    "{% for i in range(5) %}{% if i == 1 %}{% continue %}{% endif %}{% if i == 3 %}{% break %}"
    "{% endif %}{{ i }}{% endfor %}",
    "{% for x in [] %}x{% else %}none{% endfor %}{% for x in [1, 2, 3] if x != 2 %}{{ x }}"
    "{{ loop.length }}{% endfor %}",
    "{{ 'a' if false }}{{ 1 < 2 < 3 }} {{ not 1 in [2] }} {{ 1 not in [2] }} {{ 'b' in 'abc' }}",
    "{{ none }} {{ true }} {{ 1.0 }} {{ 0.1 }} {{ 100000000000000000.0 }}",
    "{{ messages[0] | tojson }}{{ messages | tojson(indent=2) }}{{ '<&\\'\xe9\\n' | tojson }}",
    "{{ ' x '.strip() ~ 'xay'.strip('xy') ~ 'a,b,c'.split(',')[1] ~ 'aXbX'.replace('X', '-') }}",
    "{{ {'a': {'b': 1}}.a.b }}{{ {'x': 1}.get('y', 2) }}{{ {'x': 1}['x'] }}",
    "{% if messages is sequence and messages is not string %}yes{% endif %}{{ 3 is odd }}",
    "{% generation %}g{% endgeneration %}{{ 'ad' 'jacent' }}{{ messages[-1].role }}"
    "{{ messages[99] }}",
]  # fmt: skip


def conversations(seed: int, count: int) -> list[Messages]:
    chance = random.Random(seed)
    texts = ["Hi", "  two\n", "", "\u68ee \U0001f333", "<think>\nhm\n</think>\n\nyes", "</think>",
             '{"a": 1}', "<tool>x</tool>", "a" * 50, "\n\n", "\x1c x \u3000", "'\"\\"]  # fmt: skip
    made: list[Messages] = []
    for _ in range(count):
        messages: Messages = []
        if chance.random() < 0.5:
            messages.append({"role": "system", "content": chance.choice(texts)})
        for turn in range(chance.randint(1, 6)):
            role = "user" if turn % 2 == 0 else "assistant"
            if chance.random() < 0.1:
                role = chance.choice(["tool", "system", "assistant"])
            messages.append({"role": role, "content": chance.choice(texts)})
        made.append(messages)
    return made


in_python = functools.cache(ChatTemplate)  # compiled once for many conversations


def outcome(render: Callable[[], str]) -> str:
    """What a template becomes; a refusal is its line."""
    try:
        return render()
    except SapwoodError as error:
        return "refused at" + str(error).split(":")[0]


def both(source: str, messages: Any, **variables: Any) -> tuple[str, str]:
    """What Python and the engine make of a template."""

    def python() -> str:
        return in_python(source).render(messages, bos_token="<bos>", eos_token="<eos>", **variables)

    def engine() -> str:
        return _runtime.render_chat_template(
            source, json.dumps(messages), "<bos>", "<eos>", json.dumps(variables)
        )

    return outcome(python), outcome(engine)


@pytest.mark.parametrize("family", FAMILIES)
def test_conversations_render_as_in_python(family: str) -> None:
    for messages in conversations(1, 150):
        for variables in ({}, {"enable_thinking": False, "date_string": "1 May 2026"}):
            expected, ours = both(FAMILIES[family], messages, **variables)
            assert ours == expected, messages


@pytest.mark.parametrize("source", CONSTRUCTS)
def test_constructs_render_as_in_python(source: str) -> None:
    expected, ours = both(source, conversations(2, 1)[0])
    assert not expected.startswith("refused")
    assert ours == expected


def test_tools_are_written_as_python_writes_them() -> None:
    tool = {
        "type": "function",
        "function": {"name": "f", "parameters": {"z": 1, "a": ["\xe9", {}]}},
    }
    call = {"role": "assistant", "content": "", "tool_calls": [tool]}
    call["tool_calls"][0]["function"]["arguments"] = {"b": 2, "a": None}  # type: ignore[index]
    messages = [{"role": "user", "content": "x"}, call, {"role": "tool", "content": "y"}]
    expected, ours = both(LLAMA, messages, tools=[tool], date_string="d")
    assert '"z": 1' in expected
    assert ours == expected


@pytest.mark.parametrize(
    ("source", "line"),
    [
        ("fine\n{% if %}\n", 2),
        ("{{ x | no_such_filter }}", 1),
        ("a\n{% for %}", 2),
        ("{% if true %}", 1),
        ("{{ 'open }}", 1),
        ("{% include 'x' %}", 1),
        ("{{ " + "(" * 500 + " }}", 1),
        ("{% if true %}" * 200, 1),
    ],
)
def test_what_is_no_template_is_refused_with_its_line(source: str, line: int) -> None:
    with pytest.raises(SapwoodError, match=f"line {line}: "):
        _runtime.render_chat_template(source, "[]")


@pytest.mark.parametrize(
    "source",
    ["a\n{{ raise_exception('no') }}", "a\n{{ missing.x }}", "a\n{{ 1 + 'x' }}", "a\n{{ 1 // 0 }}",
     "{% macro m() %}{{ m() }}{% endmacro %}\n{{ m() }}", "a\n{{ 9223372036854775807 + 1 }}"],
)  # fmt: skip
def test_what_fails_while_it_renders_is_refused_with_its_line(source: str) -> None:
    with pytest.raises(SapwoodError, match=r"line [12]: "):
        _runtime.render_chat_template(source, "[]")


def test_a_persons_markers_stay_text_in_every_chat() -> None:
    ours = _runtime.TextTokenizer(tiny_tokenizers.gemma_tokenizer_json())
    python = Tokenizer(
        tiny_tokenizers.gemma_tokenizer_json(),
        bos_token_id=2,
        eos_token_ids=[1],
        chat_template=GEMMA,
    )
    chance = random.Random(3)
    parts = ["<end_of_turn>", "<start_of_turn>", "<bos>", "<eos>", "model", "\n", " hi", "\n\n",
             "\U0010fffd0\U0010fffc", "\U0010fffd", "<", "\u2581\u2581", "森"]  # fmt: skip
    for _ in range(200):
        text = "".join(chance.choice(parts) for _ in range(chance.randint(0, 8)))
        messages = [{"role": "user", "content": text}]
        expected = python.encode_chat(messages)
        assert ours.encode_chat(json.dumps(messages), GEMMA, 2, [1]) == expected, text
