"""The house rules that a machine can check."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

from conftest import REPOSITORY

# What a floor of runtime_cpp/src may include: itself and what comes before it, with floors of one
# height in one tuple, which may not include each other.
HEIGHTS = (
    ("base",),
    ("memory", "sync", "trace", "text"),
    ("template",),
    ("kernels",),
    ("tree",),
    ("verify",),
    ("model",),
    ("draft",),
    ("engine",),
    ("measure",),
    ("api", "operators", "safety", "vulkan", "engine_process"),
)
# Known exceptions, each with its reason.
UPWARDS = {
    ("memory", "kernels/kv_layout.h"): "the layout of K and V is one contract of both floors",
    ("model", "operators"): "the ONNX Runtime host registers our operators itself",
}
SOURCE_SUFFIXES = {".cc", ".h", ".py", ".pyi", ".cmake", ".sh", ".kt", ".java", ".gradle", ".txt"}
LONGEST_FILE = 500  # lines; a file is about one thing, seldom over 300
SELDOM = 0.05  # the share of files that may be over 300


def tracked_files() -> list[Path]:
    if shutil.which("git") is None:
        pytest.skip("git is not installed")
    listed = subprocess.run(
        ["git", "ls-files", "-z", "--cached", "--others", "--exclude-standard"],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        check=False,
    )
    if listed.returncode != 0:
        pytest.skip(f"not a git checkout: {listed.stderr.strip()}")
    paths = (REPOSITORY / name for name in listed.stdout.split("\0") if name)
    return sorted(path for path in paths if path.is_file())


def source_files() -> Iterator[Path]:
    for path in tracked_files():
        in_scripts = path.parent.name in ("scripts", ".ci")
        if path.suffix in SOURCE_SUFFIXES or (in_scripts and not path.suffix):
            yield path


def relative(path: Path) -> str:
    return str(path.relative_to(REPOSITORY))


def run(*command: str) -> None:
    result = subprocess.run(command, cwd=REPOSITORY, capture_output=True, text=True, check=False)
    assert result.returncode == 0, f"{' '.join(command[:4])} ...\n{result.stdout}{result.stderr}"


def test_ruff_finds_nothing() -> None:
    run(sys.executable, "-m", "ruff", "check", "--no-cache", ".")


def test_python_is_formatted() -> None:
    run(sys.executable, "-m", "ruff", "format", "--no-cache", "--check", ".")


def test_mypy_finds_nothing() -> None:
    run(sys.executable, "-m", "mypy")


def test_cpp_is_formatted() -> None:
    clang_format = shutil.which("clang-format", path=str(Path(sys.executable).parent))
    clang_format = clang_format or shutil.which("clang-format-14")
    if clang_format is None:
        pytest.skip("clang-format 14 is not installed")
    files = [str(path) for path in tracked_files() if path.suffix in (".cc", ".h")]
    run(clang_format, "--dry-run", "-Werror", *files)


def test_no_floor_includes_a_higher_one() -> None:
    height = {floor: level for level, floors in enumerate(HEIGHTS) for floor in floors}
    wrong = []
    for path in (REPOSITORY / "runtime_cpp" / "src").rglob("*"):
        if path.suffix not in (".cc", ".h"):
            continue
        floor = path.relative_to(REPOSITORY / "runtime_cpp" / "src").parts[0]
        assert floor in height, f"{relative(path)}: a floor without a height"
        for include in re.findall(r'^#include "([^"]+)"', path.read_text(), re.M):
            other = include.split("/")[0]
            if other not in height:
                continue
            excused = (floor, include) in UPWARDS or (floor, other) in UPWARDS
            level = height[other]
            above = level > height[floor] or (level == height[floor] and other != floor)
            if above and not excused:
                wrong.append(f"{relative(path)} includes {include}")
    assert not wrong, "\n".join(wrong)


def test_the_exporter_is_not_needed_to_run_a_bundle() -> None:
    wrong = [
        relative(path)
        for path in (REPOSITORY / "python_bindings" / "sapwood").rglob("*.py")
        if re.search(r"^\s*(from|import) (sapwood_export|torch|onnx)\b", path.read_text(), re.M)
        and path.name not in ("export.py", "distill.py")
    ]
    assert not wrong, wrong


def test_files_are_about_one_thing() -> None:
    lengths = {
        relative(path): len(path.read_text(encoding="utf-8").splitlines())
        for path in source_files()
        if path.suffix in (".cc", ".h", ".py")
    }
    too_long = {name: lines for name, lines in lengths.items() if lines > LONGEST_FILE}
    assert not too_long
    over = {name: lines for name, lines in lengths.items() if lines > 300}
    assert len(over) <= max(1, SELDOM * len(lengths)), over


def test_nothing_is_left_to_do_in_a_comment() -> None:
    # Spelt apart, so that this file does not find itself.
    pattern = re.compile(r"\b(TO" + r"DO|FIX" + r"ME|X" + r"XX|HA" + r"CK)\b")
    found = [
        f"{relative(path)}:{number}: {line.strip()}"
        for path in source_files()
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        if pattern.search(line)
    ]
    assert not found, "\n".join(found)


def test_no_machine_path_or_address_is_in_the_tree() -> None:
    # Folders of one machine, private addresses, and addresses to download from.
    patterns = [
        re.compile(r"(?<![\w.])/" + r"(home|root|work|Users)/\w"),
        re.compile(r"\bhttps?" + r"://(?!json-schema|www\.apache\.org|schemas\.android)"),
        re.compile(r"\b(10|192\.168)(\.\d{1,3}){2,3}\b"),
    ]
    found = [
        f"{relative(path)}:{number}: {line.strip()[:120]}"
        for path in source_files()
        for number, line in enumerate(path.read_text(encoding="utf-8").splitlines(), 1)
        for pattern in patterns
        if pattern.search(line)
    ]
    assert not found, "\n".join(found)


def test_test_names_are_sentences() -> None:
    short = [
        f"{relative(path)}: {name}"
        for path in (REPOSITORY / "tests" / "python").glob("test_*.py")
        for name in re.findall(r"^def (test_\w+)", path.read_text(), re.M)
        if name.count("_") < 3
    ]
    assert not short, short


def test_scripts_explain_themselves_and_refuse_nonsense() -> None:
    for name in ("run", "test", "device", "capture_trace"):
        script = str(REPOSITORY / "scripts" / name)
        helped = subprocess.run([script, "--help"], capture_output=True, text=True, check=False)
        assert helped.returncode == 0
        assert f"scripts/{name}" in helped.stdout
    result = subprocess.run(
        [str(REPOSITORY / "scripts" / "test"), "--nonsense"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert result.returncode == 2
    assert len(result.stderr.splitlines()) == 1
    assert "--nonsense" in result.stderr


def test_every_shader_is_what_its_source_compiles_to() -> None:
    run(str(REPOSITORY / "scripts" / "compile_shaders"), "--check")
