"""Fixtures that several files share: bundles, and the command line as a person calls it."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pytest

from sapwood.cli.main import run
from sapwood.paths import default_bundle
from tiny_drafts import write_tiny_draft
from tiny_models import tiny_config, tiny_weights, write_folder

REPOSITORY = Path(__file__).resolve().parents[2]
SHARED = REPOSITORY.parent / "shared"

Sapwood = Callable[..., "subprocess.CompletedProcess[str]"]


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    if os.environ.get("SAPWOOD_TEST_SLOW") == "1":
        return
    skip = pytest.mark.skip(reason="takes many minutes; SAPWOOD_TEST_SLOW=1 runs it")
    for item in items:
        if item.get_closest_marker("slow"):
            item.add_marker(skip)


@pytest.fixture(scope="session")
def smollm2() -> Path:
    """The default bundle, which scripts/test makes: SmolLM2-135M-Instruct, with its ONNX graph."""
    bundle = default_bundle()
    if not (bundle / "manifest.json").is_file():
        pytest.skip(f"no bundle at {bundle}; scripts/test makes it")
    return bundle


@pytest.fixture(scope="session")
def tiny_source(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A random two-layer Llama as a Hugging Face folder."""
    config = tiny_config("llama")
    return write_folder(tmp_path_factory.mktemp("source") / "tiny", config, tiny_weights(config))


@pytest.fixture(scope="session")
def tiny_bundle(tiny_source: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The native bundle of ``tiny_source``. Not to be written to; copy it first."""
    from sapwood_export.command import export

    output = tmp_path_factory.mktemp("bundles") / "tiny"
    export(tiny_source, output)
    return output


@pytest.fixture(scope="session")
def exit_bundle(tiny_source: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The tiny bundle again, exported with an early exit after the first of its two layers."""
    from sapwood_export.command import export

    output = tmp_path_factory.mktemp("bundles") / "exit"
    export(tiny_source, output, early_exit=1)
    return output


def drafter_options(drafter: str, exit_bundle: Path) -> dict[str, Any]:
    """What an engine over ``exit_bundle`` needs for this drafter: the bundle itself, or a draft of
    random weights beside it."""
    options: dict[str, Any] = {"drafter": drafter}
    if drafter == "model":
        options["draft"] = exit_bundle
    if drafter in ("head", "parallel-heads"):
        folder = exit_bundle.parent / drafter
        if not folder.exists():
            write_tiny_draft(folder, exit_bundle, kind=drafter.replace("-", "_"))
        options["draft"] = folder
    return options


@pytest.fixture(scope="session")
def sapwood() -> Sapwood:
    """Runs the ``sapwood`` command in a process of its own."""

    def run(
        *arguments: str | Path,
        stdin: str = "",
        environment: Mapping[str, str] | None = None,
        timeout: float = 300,
    ) -> subprocess.CompletedProcess[str]:
        return subprocess.run(
            [sys.executable, "-m", "sapwood", *map(str, arguments)],
            input=stdin,
            capture_output=True,
            text=True,
            encoding="utf-8",
            timeout=timeout,
            check=False,
            env={**os.environ, **(environment or {})},
        )

    return run


@pytest.fixture
def sapwood_here(capsys: pytest.CaptureFixture[str]) -> Sapwood:
    """Runs the ``sapwood`` command in this process, which is quicker than to start another."""

    def run_here(*arguments: str | Path) -> subprocess.CompletedProcess[str]:
        status = run(list(map(str, arguments)))
        return subprocess.CompletedProcess(arguments, status, *capsys.readouterr())

    return run_here


def refused(
    result: subprocess.CompletedProcess[str], *parts: str, status: int = 2
) -> subprocess.CompletedProcess[str]:
    """Asserts that a run was refused as a person should be: one line, these words, this status."""
    assert result.returncode == status, result
    assert result.stdout == "", result
    lines = result.stderr.splitlines()
    assert len(lines) == 1, result.stderr
    assert "Traceback" not in result.stderr
    for part in parts:
        assert part in lines[0], (part, lines[0])
    return result


def spec_bench_prompts(count: int) -> list[str]:
    """The first turns of the first ``count`` prompts of the shared development set."""
    path = SHARED / "data" / "spec_bench_dev.jsonl"
    if not path.is_file():
        pytest.skip(f"{path} is not there")
    with path.open(encoding="utf-8") as lines:
        return [json.loads(line)["turns"][0] for _, line in zip(range(count), lines, strict=False)]
