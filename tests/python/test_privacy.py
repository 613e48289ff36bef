"""No prompt and no answer is in anything written, unless it was asked for (FEATURES.md, G4).

Every face is given a prompt that nothing else holds, in a home of its own. Whatever it prints and
every file it leaves, caches and temporary ones included, is searched for that prompt and for what
was answered, in several encodings and as ids.
"""

from __future__ import annotations

import base64
import json
import os
import re
import resource
import signal
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

import engine_client as client
from canary import encodings, everything_under, found_in
from conftest import REPOSITORY
from engine_client import engine_process, find_engine
from sapwood import Engine

PROMPT = "Zanzibar quokka marmalade; periwinkle Xylophone gazebo vortex."
SYSTEM = "Kumquat obelisk tambourine."
WORDS = ("quokka marmalade", "periwinkle Xylophone", "obelisk tambourine")
_NEW_TOKENS = 24


@dataclass(frozen=True)
class Secrets:
    """What must not be found: texts, and ids of prompts and answers."""

    texts: tuple[str, ...]
    ids: tuple[tuple[int, ...], ...]

    def check(self, where: Mapping[str, bytes]) -> None:
        for name, data in where.items():
            assert found_in(data, self.texts, self.ids) == [], name


@pytest.fixture(scope="module")
def secrets(tiny_bundle: Path) -> Secrets:
    engine = Engine(tiny_bundle, threads=1, drafter="mix")
    generation = engine.generate(PROMPT, system=SYSTEM, max_new_tokens=_NEW_TOKENS)
    answer = "".join(generation)
    assert len(answer) > 8
    ids = (tuple(generation.prompt_ids), tuple(generation.token_ids))
    return Secrets((*WORDS, answer), ids)


@dataclass(frozen=True)
class Home:
    """A folder that everything a command writes goes into."""

    folder: Path

    @property
    def environment(self) -> dict[str, str]:
        names = ("HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME", "XDG_STATE_HOME", "TMPDIR")
        paths = {name: self.folder / name.lower() for name in names}
        for path in paths.values():
            path.mkdir(exist_ok=True)
        return {**os.environ, **{name: str(path) for name, path in paths.items()}}

    def run(
        self, command: Sequence[str | Path], said: str = ""
    ) -> subprocess.CompletedProcess[bytes]:
        """With core files allowed, as on a machine where someone collects them."""
        return subprocess.run(
            [str(part) for part in command],
            input=said.encode(),
            capture_output=True,
            cwd=self.folder,
            env=self.environment,
            timeout=120,
            check=False,
            preexec_fn=_allow_core_files,
        )

    def sapwood(self, *arguments: str | Path, said: str = "") -> subprocess.CompletedProcess[bytes]:
        return self.run([sys.executable, "-m", "sapwood", *arguments], said)

    def written(self) -> dict[str, bytes]:
        return everything_under(self.folder)


def _allow_core_files() -> None:
    _, hard = resource.getrlimit(resource.RLIMIT_CORE)
    resource.setrlimit(resource.RLIMIT_CORE, (hard, hard))


@pytest.fixture
def home(tmp_path: Path) -> Home:
    folder = tmp_path / "everything"
    folder.mkdir()
    return Home(folder)


def asked(bundle: Path) -> tuple[str | Path, ...]:
    options = ("--prompt", PROMPT, "--system", SYSTEM, "--max-new-tokens", str(_NEW_TOKENS))
    return (bundle, *options, "--drafter", "mix", "--threads", "1")


def test_a_text_is_found_in_whatever_it_is_wrapped(secrets: Secrets) -> None:
    for _, form in encodings(WORDS[0]):
        assert found_in(b"\x00before" + form + b"after", secrets.texts, secrets.ids)
    for shift in range(3):
        wrapped = base64.b64encode(b"xyz"[:shift] + b"say: " + PROMPT.encode() + b" please")
        assert found_in(wrapped, secrets.texts, ())
    ids = secrets.ids[0]
    for form in (json.dumps(ids), " ".join(map(str, ids)), "\n".join(map(str, ids))):
        assert found_in(form.encode(), (), secrets.ids)
    for bits in (2, 4, 8):
        binary = b"".join(each.to_bytes(bits, "little") for each in ids)
        assert found_in(b"\x01" + binary, (), secrets.ids)
    assert found_in(b"nothing of it, 1 2 3 4 5, 0 0 0 0", secrets.texts, secrets.ids) == []


def test_an_answer_goes_to_standard_output_and_nowhere_else(
    home: Home, tiny_bundle: Path, secrets: Secrets
) -> None:
    result = home.sapwood("generate", *asked(tiny_bundle))
    assert result.returncode == 0, result.stderr
    *words, answer = secrets.texts
    assert answer.encode() in result.stdout, "it was asked for there"
    Secrets(tuple(words), secrets.ids).check({"standard output": result.stdout})
    secrets.check({"standard error": result.stderr, **home.written()})


def test_a_conversation_is_kept_nowhere(home: Home, tiny_bundle: Path, secrets: Secrets) -> None:
    options = ("--system", SYSTEM, "--max-new-tokens", str(_NEW_TOKENS), "--drafter", "mix")
    result = home.sapwood("chat", tiny_bundle, *options, "--threads", "1", said=f"{PROMPT}\n")
    assert result.returncode == 0, result.stderr
    assert secrets.texts[-1].encode() in result.stdout, "it was asked for there"
    Secrets(WORDS, secrets.ids).check({"standard output": result.stdout})
    secrets.check({"standard error": result.stderr, **home.written()})


def test_a_benchmark_of_a_prompt_does_not_repeat_it(
    home: Home, tiny_bundle: Path, secrets: Secrets
) -> None:
    asked = ("--prompt", PROMPT, "--repeats", "1", "--max-new-tokens", str(_NEW_TOKENS))
    run = ("bench", "decode", tiny_bundle, *asked, "--modes", "plain,dynamic", "--threads", "1")
    result = home.sapwood(*run, "--json")
    assert result.returncode == 0, result.stderr
    Secrets(WORDS, secrets.ids).check({"output": result.stdout, "error": result.stderr})
    Secrets(WORDS, secrets.ids).check(home.written())


def test_a_trace_and_what_is_said_about_it_hold_no_text(
    home: Home, tiny_bundle: Path, secrets: Secrets
) -> None:
    pytest.importorskip("perfetto")
    trace = home.folder / "out.perfetto-trace"
    said = [home.sapwood("trace", "run", *asked(tiny_bundle), "-o", trace, "--json")]
    said.append(home.sapwood("trace", "explain", trace))
    for each in said:
        assert each.returncode == 0, each.stderr
        secrets.check({"standard output": each.stdout, "standard error": each.stderr})
    assert trace.stat().st_size > 1000
    secrets.check(home.written())


def test_a_report_holds_no_text_in_any_form(
    home: Home, tiny_bundle: Path, tmp_path: Path, secrets: Secrets
) -> None:
    suite = tmp_path / "suite.jsonl"  # theirs, not ours
    suite.write_text(json.dumps({"question_id": 1, "category": "a", "turns": [PROMPT]}) + "\n")
    # Without the system prompt the answer is another one.
    generation = Engine(tiny_bundle, threads=1).generate(PROMPT, max_new_tokens=_NEW_TOKENS)
    answer = "".join(generation)
    ids = (tuple(generation.prompt_ids), tuple(generation.token_ids))
    unsaid = Secrets((*WORDS, answer), ids)
    run = ("bench", "suite", tiny_bundle, "--suite", suite, "--modes", "plain,dynamic")
    run = (*run, "--threads", "1", "--max-new-tokens", str(_NEW_TOKENS))
    printed = home.sapwood(*run, "--html", "report.html", "--json")
    assert printed.returncode == 0, printed.stderr
    assert json.loads(printed.stdout)["equal_tokens"]
    shown = home.sapwood("bench", "suite", *run[2:])
    for each in (printed, shown):
        unsaid.check({"standard output": each.stdout, "standard error": each.stderr})
    assert (home.folder / "report.html").stat().st_size > 1000
    unsaid.check(home.written())


@pytest.mark.parametrize(
    "arguments",
    [
        ("--prompt", PROMPT, "--max-new-tokens", "none"),
        ("--prompt", PROMPT, "--system", SYSTEM, "--context-length", "5"),
        ("--prompt", *PROMPT.split()),  # somebody forgot the quotation marks
    ],
)
def test_a_refusal_does_not_repeat_what_was_said(
    home: Home, tiny_bundle: Path, secrets: Secrets, arguments: tuple[str, ...]
) -> None:
    result = home.sapwood("generate", tiny_bundle, *arguments)
    assert result.returncode == 2
    assert result.stdout == b""
    assert result.stderr.count(b"\n") == 1
    secrets.check({"standard error": result.stderr, **home.written()})


_CRASH = """
import os, sys
import sapwood.generation as generation
from sapwood.cli import main

def crash(self, *arguments):
    {what}

{where} = crash
sys.argv[:] = ["sapwood", *sys.argv[1:]]
main.main()
"""


@pytest.mark.parametrize(
    ("what", "where"),
    [
        ("raise RuntimeError('a bug of ours')", "generation.Generation._run"),
        ("raise RuntimeError('a bug of ours')", "generation.Generation._current_stats"),
        ("os.abort()", "generation.Generation._current_stats"),
    ],
)
def test_a_crash_leaves_a_trace_of_calls_and_nothing_of_the_texts(
    home: Home, tiny_bundle: Path, secrets: Secrets, what: str, where: str
) -> None:
    script = _CRASH.format(what=what, where=where)
    result = home.run([sys.executable, "-c", script, "generate", *asked(tiny_bundle), "--json"])
    assert result.returncode in (1, -signal.SIGABRT)
    secrets.check({"standard output": result.stdout, "standard error": result.stderr})
    secrets.check(home.written())


def test_the_app_and_the_runtime_write_nothing_to_androids_log() -> None:
    sources = [
        *(REPOSITORY / "android_app").rglob("src/main/**/*.java"),
        *(REPOSITORY / "android_app").rglob("src/main/**/*.kt"),
        *(REPOSITORY / "runtime_cpp" / "src").rglob("*.cc"),
    ]
    assert len(sources) > 200
    calls = re.compile(r"\bLog\.[vdiwe]\(|__android_log_|printStackTrace|System\.(out|err)\b")
    assert [path for path in sources if calls.search(path.read_text(encoding="utf-8"))] == []


def collects_core_files(home: Home) -> bool:
    """Whether a program that crashes here leaves one, in its working folder."""
    home.run(["sh", "-c", "kill -SEGV $$"])
    left = [path for path in home.folder.iterdir() if path.name.startswith("core")]
    for path in left:
        path.unlink()
    return bool(left)


def test_neither_program_leaves_a_core_file(home: Home, tiny_bundle: Path) -> None:
    if not collects_core_files(home):
        pytest.skip("this machine writes no core files into the working folder")
    script = _CRASH.format(what="os.abort()", where="generation.Generation._current_stats")
    home.run([sys.executable, "-c", script, "generate", *asked(tiny_bundle)])
    start = f"ulimit -c $(ulimit -H -c); cd {home.folder}; exec {find_engine()} serve"
    with engine_process("sh", "-c", start) as engine:
        engine.ask(client.HELLO, client.HELLO_REPLY, protocol=1)
        engine.process.send_signal(signal.SIGSEGV)
        assert engine.process.wait(client.SECONDS) == -signal.SIGSEGV
    assert not [path for path in home.folder.iterdir() if path.name.startswith("core")]


def test_the_engine_process_says_nothing_of_texts_but_the_answer(
    tiny_bundle: Path, tmp_path: Path, secrets: Secrets
) -> None:
    messages = [{"role": "system", "content": SYSTEM}, {"role": "user", "content": PROMPT}]
    with engine_process(find_engine()) as engine:
        engine.greet_and_load(tiny_bundle, threads=1)
        engine.ask(client.TRACE, client.TRACED, id=10, events=1 << 12)
        answer, end = engine.answer(2, messages=messages, max_new_tokens=_NEW_TOKENS)
        assert (answer, end["stop_reason"]) == (secrets.texts[-1], "length")
        trace = tmp_path / "out.perfetto-trace"
        assert engine.ask(client.TRACE, client.TRACED, id=11, file=str(trace))["events"] > 50
        secrets.check({"trace": trace.read_bytes()})
        # What came of it beside the text, and every way to be refused.
        answers = [end, engine.answer(3, messages=messages, top_p=7.0)[1]]
        answers.append(engine.answer(4, messages=messages, mode="no such mode")[1])
        answers.append(engine.answer(5, messages=messages, prompt=PROMPT)[1])
        answers.append(engine.answer(6, prompt=PROMPT * 1000)[1])
        answers.append(engine.answer(7, messages=[{"content": PROMPT}])[1])
        assert [each.get("code") for each in answers] == [None, *["invalid_argument"] * 5]
        secrets.check({"frames": json.dumps(answers).encode()})
        status, error = engine.end()
        assert (status, error) == (0, "")


@pytest.mark.parametrize("end", ["garbage", "half a frame", "crash", "hang up"])
def test_however_the_engine_process_ends_it_does_not_repeat_what_it_heard(
    tiny_bundle: Path, secrets: Secrets, end: str
) -> None:
    with engine_process(find_engine()) as engine:
        engine.greet_and_load(tiny_bundle, threads=1)
        engine.send(client.GENERATE, id=2, prompt=PROMPT, max_new_tokens=2000, ignore_eos=True)
        engine.receive_until(client.TEXT)
        if end == "garbage":
            payload = json.dumps(PROMPT).encode()
            engine.send_bytes(len(payload).to_bytes(4, "little") + b"\x03" + payload)
        elif end == "half a frame":
            engine.send_bytes(b"\xff\x00\x00\x00\x03" + PROMPT.encode())
        elif end == "crash":
            engine.process.send_signal(signal.SIGSEGV)
        _, error = engine.end()
    secrets.check({"standard error": error.encode()})


def test_the_engines_command_line_keeps_the_answer_apart(
    home: Home, tiny_bundle: Path, secrets: Secrets
) -> None:
    command = [find_engine(), "generate", "--bundle", tiny_bundle, "--threads", "1"]
    result = home.run([*command, "--prompt", PROMPT, "--max-new-tokens", "8"])
    assert result.returncode == 0, result.stderr
    said = result.stdout.decode().strip()
    unsaid = Secrets((*secrets.texts, said), secrets.ids)
    unsaid.check({"standard error": result.stderr, **home.written()})
    refusals = (["--prompt", *PROMPT.split()], ["--prompt", PROMPT, "--top-p", "7"])
    for arguments in refusals:
        result = home.run([*command, *arguments])
        assert result.returncode == 2
        unsaid.check({"standard error": result.stderr, "standard output": result.stdout})
