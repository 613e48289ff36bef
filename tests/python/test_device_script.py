"""scripts/device says in one line what is missing."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from conftest import REPOSITORY


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


@pytest.mark.parametrize("arguments", [(), ("fly",), ("run",)])
def test_a_wrong_command_is_one_clear_line(arguments: tuple[str, ...]) -> None:
    result = device(*arguments)
    assert result.returncode == 2
    assert len(result.stderr.splitlines()) == 1
