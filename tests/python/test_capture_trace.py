"""scripts/capture_trace, with an adb that stands in for a phone."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import pytest

from conftest import REPOSITORY

CONFIGURATION = REPOSITORY / "scripts" / "capture_trace.pbtxt"

# One phone: keeps what perfetto was told, and records "events".
ADB = """#!/bin/bash
here=$(dirname "$0")
case "$*" in
  devices) printf 'List\\na\\tdevice\\n' ;;
  "shell getprop"*) echo arm64-v8a ;;
  "shell perfetto --txt -c - -o "*)
    cat >"$here/told"
    [[ ! -e $here/old ]] && printf events >"$here/there" ;;
  "exec-out cat /data/misc/perfetto-traces/"*) cat "$here/there" ;;
  "shell rm -f /data/misc/perfetto-traces/"*) rm "$here/there" ;;
  *) exit 1 ;;
esac
"""


def capture(folder: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    adb = folder / "adb"
    adb.write_text(ADB)
    adb.chmod(0o755)
    return subprocess.run(
        [str(REPOSITORY / "scripts" / "capture_trace"), *arguments],
        capture_output=True,
        text=True,
        check=False,
        env={**os.environ, "PATH": f"{folder}:{os.environ['PATH']}", "ANDROID_SERIAL": ""},
    )


def test_a_phones_recording_comes_back_and_leaves_nothing_there(tmp_path: Path) -> None:
    out = tmp_path / "answer.perfetto-trace"
    result = capture(tmp_path, "--seconds", "25", "-o", str(out))
    assert result.returncode == 0, result.stderr
    assert result.stdout == f"{out}\n"
    assert out.read_text() == "events"
    assert not (tmp_path / "there").exists()
    told = (tmp_path / "told").read_text()
    assert told == CONFIGURATION.read_text().replace("duration_ms: 10000", "duration_ms: 25000")
    assert "duration_ms: 25000" in told


def test_a_phone_without_perfetto_is_one_clear_line_and_no_file(tmp_path: Path) -> None:
    (tmp_path / "old").touch()
    out = tmp_path / "answer.perfetto-trace"
    result = capture(tmp_path, "-o", str(out))
    assert result.returncode == 2
    assert "Android 10" in result.stderr.splitlines()[-1]
    assert not list(tmp_path.glob("answer*"))


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        (("--seconds", "0"), "--seconds"),
        (("--seconds", "4000"), "--seconds"),
        (("-o",), "-o needs a value"),
        (("-o", "/no/such/folder/x"), "/no/such/folder"),
        (("fly",), "fly"),
    ],
)
def test_a_wrong_option_is_one_clear_line(
    tmp_path: Path, arguments: tuple[str, ...], word: str
) -> None:
    result = capture(tmp_path, *arguments)
    assert result.returncode == 2
    assert len(result.stderr.splitlines()) == 1
    assert word in result.stderr


def test_perfetto_knows_every_field_of_the_configuration_and_no_log_is_read() -> None:
    pytest.importorskip("perfetto")
    from google.protobuf import text_format

    from sapwood.trace.perfetto_file import perfetto_messages

    config = text_format.Parse(CONFIGURATION.read_text(), perfetto_messages().TraceConfig())
    assert config.duration_ms == 10000
    sources = [source.config for source in config.data_sources]
    assert [source.name for source in sources] == [
        "linux.ftrace",
        "linux.process_stats",
        "android.power",
    ]
    # What the engine's stages come by: ATrace in the app, lines of the marker from its process.
    assert list(sources[0].ftrace_config.atrace_apps) == ["com.endpoint.sapwood"]
    assert "ftrace/print" in sources[0].ftrace_config.ftrace_events
