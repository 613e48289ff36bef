"""scripts/device, with an adb that stands in for a phone."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path

import pytest

from conftest import REPOSITORY
from engine_client import find_engine


def device(*arguments: str, adb: Path | None = None) -> subprocess.CompletedProcess[str]:
    path = os.environ["PATH"] if adb is None else f"{adb}:{os.environ['PATH']}"
    return subprocess.run(
        [str(REPOSITORY / "scripts" / "device"), *arguments],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PATH": path, "ANDROID_SERIAL": ""},
    )


def write_adb(folder: Path, devices: str) -> Path:
    """An adb that knows these devices and nothing else."""
    script = folder / "adb"
    script.write_text(f"#!/bin/sh\n[ $1 = devices ] && printf 'List\\n{devices}' && exit\nexit 1\n")
    script.chmod(0o755)
    return folder


@pytest.mark.parametrize(
    ("devices", "word"),
    [
        ("", "no phone is connected"),
        ("a\\tunauthorized\\n", "has not allowed"),
        ("a\\tdevice\\nb\\tdevice\\n", "ANDROID_SERIAL"),
    ],
)
def test_a_phone_that_is_not_there_is_one_clear_line(
    tmp_path: Path, devices: str, word: str
) -> None:
    result = device("run", "hello", adb=write_adb(tmp_path, devices))
    assert result.returncode == 2
    assert len(result.stderr.splitlines()) == 1
    assert word in result.stderr


@pytest.mark.parametrize("arguments", [(), ("fly",), ("run",), ("trace",)])
def test_a_wrong_command_is_one_clear_line(arguments: tuple[str, ...]) -> None:
    result = device(*arguments)
    assert result.returncode == 2
    assert len(result.stderr.splitlines()) == 1


# One phone, whose folder lies beside the script.
PHONE = """#!/bin/bash
here=$(dirname "$0")
at_phone() { printf '%s' "${1//\\/data\\/local\\/tmp/$here}"; }
case "$*" in
  devices) printf 'List\\na\\tdevice\\n' ;;
  "shell getprop"*) echo arm64-v8a ;;
  shell*) shift && exec bash -c "$(at_phone "$*")" ;;
  pull*) cp "$(at_phone "$2")" "$3" ;;
  *) exit 1 ;;
esac
"""


@pytest.fixture
def phone(tmp_path: Path, tiny_bundle: Path) -> Path:
    """A phone with this machine's engine and a bundle on it."""
    (tmp_path / "adb").write_text(PHONE)
    (tmp_path / "adb").chmod(0o755)
    folder = tmp_path / "sapwood"
    folder.mkdir()
    shutil.copy(find_engine(), folder / "sapwood_engine")
    shutil.copytree(tiny_bundle, folder / "bundle")
    return tmp_path


OPTIONS = ("--raw", "--ignore-eos", "--max-new-tokens", "8", "--threads", "1")


def test_a_phone_answers_a_prompt_with_quotation_marks(phone: Path) -> None:
    result = device("run", 'it\'s "one" $HOME', *OPTIONS, adb=phone)
    assert result.returncode == 0, result.stderr
    stats = json.loads(result.stderr.splitlines()[-1])
    assert (stats["stop_reason"], stats["emitted_tokens"]) == ("length", 8)


def test_a_phone_is_measured_in_every_mode(phone: Path) -> None:
    result = device("bench", "one two", *OPTIONS, adb=phone)
    assert result.returncode == 0, result.stderr
    modes = [line.split()[0] for line in result.stdout.splitlines()]
    assert modes == ["plain", "chain", "fixed", "dynamic"]


def test_a_phones_trace_comes_back_and_leaves_nothing_there(phone: Path) -> None:
    out = phone / "answer.perfetto-trace"
    result = device("trace", "one two one two", "-o", str(out), *OPTIONS, adb=phone)
    assert result.returncode == 0, result.stderr
    assert result.stdout.splitlines()[-1] == str(out)
    assert b"Target_Verify" in out.read_bytes()
    assert not list((phone / "sapwood").glob("*.perfetto-trace"))
    assert not list(phone.glob("*.part"))


def test_a_phone_without_the_engine_is_one_clear_line(phone: Path) -> None:
    shutil.rmtree(phone / "sapwood")
    result = device("run", "one", adb=phone)
    assert result.returncode == 2
    assert "scripts/device push" in result.stderr
