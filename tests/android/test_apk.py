"""What an APK of scripts/build_apk must be; scripts/test_android names it in SAPWOOD_APK."""

from __future__ import annotations

import hashlib
import json
import os
import re
import struct
import subprocess
import zipfile
from pathlib import Path

import pytest

PAGE = 16384
ELF_LOAD = 1
ELF_AARCH64 = 183
SECRETS = re.compile(
    rb"BEGIN [A-Z ]*PRIVATE KEY|AKIA[0-9A-Z]{16}|gh[pousr]_[0-9A-Za-z]{36}"
    rb"|xox[baprs]-[0-9A-Za-z-]{10}|keystore|storepass|Bearer [0-9A-Za-z]"
)
MACHINE_PATHS = re.compile(rb"(?<![\w.])/(home|root|work|Users)/\w+")


@pytest.fixture(scope="module")
def apk() -> Path:
    path = os.environ.get("SAPWOOD_APK")
    if path is None:
        pytest.skip("SAPWOOD_APK is not set: run scripts/test_android")
    print(f"\n{path}: {Path(path).stat().st_size:,} bytes")
    return Path(path)


@pytest.fixture(scope="module")
def entries(apk: Path) -> dict[str, zipfile.ZipInfo]:
    with zipfile.ZipFile(apk) as archive:
        return {entry.filename: entry for entry in archive.infolist()}


def run(*command: str | Path) -> str:
    result = subprocess.run(
        [str(word) for word in command], capture_output=True, text=True, check=False
    )
    assert result.returncode == 0, result.stdout + result.stderr
    return result.stdout


def content_begins_at(apk: Path, entry: zipfile.ZipInfo) -> int:
    with apk.open("rb") as file:
        file.seek(entry.header_offset + 26)
        name, extra = struct.unpack("<HH", file.read(4))
    return entry.header_offset + 30 + name + extra


def load_segments(binary: bytes) -> list[tuple[int, int, int]]:
    """Offset, address and alignment of an ELF file's LOAD segments."""
    (table,) = struct.unpack_from("<Q", binary, 32)
    size, count = struct.unpack_from("<HH", binary, 54)
    segments = []
    for i in range(count):
        kind, _, offset, address = struct.unpack_from("<IIQQ", binary, table + i * size)
        (alignment,) = struct.unpack_from("<Q", binary, table + i * size + 48)
        if kind == ELF_LOAD:
            segments.append((offset, address, alignment))
    return segments


def test_it_is_signed_with_schemes_2_and_3(apk: Path) -> None:
    said = run("apksigner", "verify", "--verbose", "--min-sdk-version", "26", apk)
    assert "Verified using v2 scheme (APK Signature Scheme v2): true" in said
    assert "Verified using v3 scheme (APK Signature Scheme v3): true" in said


def test_a_changed_byte_breaks_the_signature(
    apk: Path, entries: dict[str, zipfile.ZipInfo], tmp_path: Path
) -> None:
    changed = bytearray(apk.read_bytes())
    changed[content_begins_at(apk, entries["classes.dex"]) + 100] ^= 1
    broken = tmp_path / "broken.apk"
    broken.write_bytes(changed)
    result = subprocess.run(["apksigner", "verify", broken], capture_output=True, check=False)
    assert result.returncode != 0


def test_its_badge_says_what_it_is(apk: Path) -> None:
    badge = run("aapt2", "dump", "badging", apk)
    assert "package: name='com.endpoint.sapwood'" in badge
    assert "sdkVersion:'26'" in badge
    assert "targetSdkVersion:'35'" in badge
    assert "launchable-activity: name='com.endpoint.sapwood.ChatActivity'" in badge
    assert "native-code: 'arm64-v8a'" in badge
    assert "zh-Hans" in badge


def test_it_asks_for_no_permission(apk: Path) -> None:
    assert "uses-permission" not in run("aapt2", "dump", "badging", apk)


def test_native_libraries_are_unpacked_when_it_is_installed(apk: Path) -> None:
    manifest = run("aapt2", "dump", "xmltree", "--file", "AndroidManifest.xml", apk)
    assert re.search(r"extractNativeLibs\(0x[0-9a-f]+\)=true", manifest)


def test_its_dex_file_disassembles(apk: Path, tmp_path: Path) -> None:
    with zipfile.ZipFile(apk) as archive:
        dex = Path(archive.extract("classes.dex", tmp_path))
    code = run("dexdump", "-d", dex)
    for name in ("ChatActivity", "TreeView", "engine/ProcessEngine", "bundle/BundleStore"):
        assert f"Class descriptor  : 'Lcom/endpoint/sapwood/{name};'" in code
    assert "invoke-virtual" in code
    # Android has no LambdaMetafactory: a lambda that was not rewritten would crash there.
    assert "invoke-custom" not in code


def test_libraries_and_bundle_are_stored_at_page_borders(
    apk: Path, entries: dict[str, zipfile.ZipInfo]
) -> None:
    run("zipalign", "-c", "-p", "4", apk)
    aligned = [name for name in entries if name.startswith(("lib/", "assets/"))]
    assert "lib/arm64-v8a/libsapwood_engine.so" in aligned
    assert "assets/bundle/target.weights" in aligned
    for name in aligned:
        assert entries[name].compress_type == zipfile.ZIP_STORED, name
        assert content_begins_at(apk, entries[name]) % PAGE == 0, name


def test_libraries_are_for_arm64_and_pages_of_16_kib(
    apk: Path, entries: dict[str, zipfile.ZipInfo]
) -> None:
    libraries = [name for name in entries if name.endswith(".so")]
    assert libraries
    for name in libraries:
        with zipfile.ZipFile(apk) as archive:
            binary = archive.read(name)
        assert binary[:6] == b"\x7fELF\x02\x01", name
        assert struct.unpack_from("<H", binary, 18)[0] == ELF_AARCH64, name
        segments = load_segments(binary)
        assert segments, name
        for offset, address, alignment in segments:
            assert alignment % PAGE == 0, f"{name}: alignment {alignment}"
            assert offset % PAGE == address % PAGE, name


def test_the_bundle_is_whole(apk: Path) -> None:
    with zipfile.ZipFile(apk) as archive:
        for folder in ("assets/bundle", "assets/bundle/draft"):
            manifest = json.loads(archive.read(f"{folder}/manifest.json"))
            for file in manifest["files"]:
                content = archive.read(f"{folder}/{file['name']}")
                assert len(content) == file["bytes"], file["name"]
                assert hashlib.sha256(content).hexdigest() == file["sha256"], file["name"]


def test_it_holds_no_secrets_and_no_paths_of_the_machine_that_made_it(
    apk: Path, entries: dict[str, zipfile.ZipInfo]
) -> None:
    with zipfile.ZipFile(apk) as archive:
        for name in entries:
            if name.endswith((".weights", "tokenizer.json")):
                continue  # numbers, and words of all the world
            content = archive.read(name)
            for pattern in (SECRETS, MACHINE_PATHS):
                found = pattern.search(content)
                assert found is None, f"{name}: {found and found.group()!r}"
    assert not any(name.endswith((".jks", ".keystore", ".pem", ".p12")) for name in entries)
