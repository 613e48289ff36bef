"""The engine as it is shipped to phones: one static file, run here by an emulator."""

from __future__ import annotations

import json
import os
import re
import shutil
import struct
import subprocess
from pathlib import Path

import pytest

from conftest import REPOSITORY

SHIPPED = REPOSITORY / "build" / "engine-arm64-musl" / "libsapwood_engine.so"
PAGE = 16384  # bytes; newer phones map nothing smaller


@pytest.fixture(scope="module")
def shipped() -> Path:
    if not SHIPPED.is_file():
        pytest.skip(f"no {SHIPPED.name}; scripts/build_engine --arm64-musl makes it")
    return SHIPPED


def program_headers(path: Path) -> list[tuple[int, ...]]:
    """(type, flags, offset, address, physical, file size, memory size, alignment) of each."""
    data = path.read_bytes()
    assert data[:6] == b"\x7fELF\x02\x01"
    offset, size, count = struct.unpack_from("<32xQ14xHH", data)
    return [struct.unpack_from("<IIQQQQQQ", data, offset + i * size) for i in range(count)]


def test_it_needs_no_loader_and_suits_pages_of_sixteen_kilobytes(shipped: Path) -> None:
    headers = program_headers(shipped)
    load, interpreter = 1, 3
    assert not [header for header in headers if header[0] == interpreter]
    segments = [header for header in headers if header[0] == load]
    assert segments
    for _, _, offset, address, _, _, _, alignment in segments:
        assert alignment >= PAGE
        assert offset % PAGE == address % PAGE


def ids(command: list[str], bundle: Path, mode: str, marker: Path) -> list[int]:
    result = subprocess.run(
        [*command, "generate", "--bundle", str(bundle), "--prompt", "one two one two one", "--raw",
         "--mode", mode, "--max-new-tokens", "12", "--ignore-eos", "--threads", "1", "--ids"],
        capture_output=True,
        check=True,
        timeout=600,
        env={**os.environ, "SAPWOOD_TRACE_MARKER": str(marker)},
    )  # fmt: skip
    return list(json.loads(result.stderr)["ids"])


@pytest.mark.parametrize("bundle", ["tiny_bundle", pytest.param("smollm2", marks=pytest.mark.slow)])
def test_every_mode_gives_the_same_ids_under_emulation_and_marks_its_stages(
    shipped: Path, bundle: str, request: pytest.FixtureRequest, tmp_path: Path
) -> None:
    if shutil.which("qemu-aarch64-static") is None:
        pytest.skip("qemu-aarch64-static is not installed; it is in Debian's qemu-user-static")
    folder = request.getfixturevalue(bundle)
    marker = tmp_path / "trace_marker"  # as Android's kernel has one
    marker.touch()
    answers = {
        mode: ids(["qemu-aarch64-static", str(shipped)], folder, mode, marker)
        for mode in ("plain", "chain", "fixed", "dynamic")
    }
    assert len(answers["plain"]) == 12
    assert all(answer == answers["plain"] for answer in answers.values()), answers
    lines = marker.read_text().splitlines()
    assert all(re.fullmatch(r"[SFC]\|\d+\|[\w ]+\|\d+", line) for line in lines)
    verified = [line for line in lines if re.fullmatch(r"S\|\d+\|Target_Verify\|\d+", line)]
    assert len(verified) >= 12
