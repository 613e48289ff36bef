"""scripts/fetch_onnxruntime_headers, without the network: npm is replaced by a script of ours."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

SCRIPT = Path(__file__).resolve().parents[2] / "scripts" / "fetch_onnxruntime_headers"


def run(destination: Path, path: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(
        [sys.executable, str(SCRIPT), str(destination)],
        capture_output=True,
        text=True,
        env={**os.environ, "PATH": path},
        check=False,
    )


def fake_npm(folder: Path, script: str) -> str:
    """A PATH on which npm is that shell script."""
    folder.mkdir()
    npm = folder / "npm"
    npm.write_text(f"#!/bin/sh\n{script}\n")
    npm.chmod(0o755)
    return f"{folder}{os.pathsep}{os.environ['PATH']}"


def test_headers_that_are_there_are_left_alone(tmp_path: Path) -> None:
    header = tmp_path / "headers" / "onnxruntime_c_api.h"
    header.parent.mkdir()
    header.write_text("// mine\n")
    done = run(header.parent, path="")
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")
    assert header.read_text() == "// mine\n"


def test_a_machine_without_npm_is_told_what_to_install(tmp_path: Path) -> None:
    done = run(tmp_path / "headers", path=str(tmp_path))
    assert done.returncode == 2
    assert done.stderr.splitlines() == [
        "fetch_onnxruntime_headers: npm is not installed; install it (Debian: apt-get install npm)"
    ]
    assert list(tmp_path.iterdir()) == []


def test_a_registry_that_refuses_is_quoted_and_nothing_is_left(tmp_path: Path) -> None:
    path = fake_npm(tmp_path / "bin", "echo 'npm error code E404' >&2; exit 1")
    done = run(tmp_path / "headers", path)
    assert done.returncode == 2
    assert done.stderr.splitlines()[-1].endswith("failed: npm error code E404")
    assert [entry.name for entry in tmp_path.iterdir()] == ["bin"]


def test_another_package_than_the_one_checked_is_refused(tmp_path: Path) -> None:
    path = fake_npm(tmp_path / "bin", "echo something else > package.tgz")
    done = run(tmp_path / "headers", path)
    assert done.returncode == 2
    assert "sha256 differs" in done.stderr.splitlines()[-1]
    assert [entry.name for entry in tmp_path.iterdir()] == ["bin"]
