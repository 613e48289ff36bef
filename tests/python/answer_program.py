"""tests/cpp/programs/answer.cc, a program over the C interface without Python, run as a process."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

import pytest

from conftest import REPOSITORY
from sapwood import hosts

ARM64 = REPOSITORY / "build" / "arm64"
# Where the cross compiler keeps the system's libraries for 64-bit Arm.
ARM64_SYSTEM = Path("/usr/aarch64-linux-gnu")
# The same libraries and a list of Cortex-A76 cores, which scripts/test_arm64 lays out.
CORTEX_A76_SYSTEM = ARM64 / "cortex-a76"
PROMPT = (1, 5, 9, 5, 9, 5)  # for models of random weights


@dataclass(frozen=True)
class AnswerProgram:
    """The program, and what it is started with: an emulator or nothing; where its libraries are."""

    path: Path
    libraries: Mapping[str, Path]  # by the variables of the environment that name them
    emulator: tuple[str, ...] = ()

    def ids(
        self,
        bundle: Path,
        host: str,
        mode: str,
        prompt: Sequence[int] = PROMPT,
        tokens: int = 24,
        processor: str = "",
    ) -> list[int]:
        """Tokens that continue ``prompt``, drawn at 0.8; ``processor``: the one to emulate."""
        environment = os.environ | {name: str(path) for name, path in self.libraries.items()}
        if processor:
            environment["QEMU_CPU"] = processor
        result = subprocess.run(
            [*self.emulator, self.path, bundle, host, mode, str(tokens), *map(str, prompt)],
            capture_output=True,
            text=True,
            env=environment,
            check=False,
        )
        assert (result.returncode, result.stderr) == (0, "")
        ids = [int(token) for token in result.stdout.split()]
        assert len(ids) == tokens
        return ids


def desktop_program() -> AnswerProgram:
    """The one that scripts/test built for this machine; skips the test where there is none."""
    path = Path(os.environ.get("SAPWOOD_ANSWER", REPOSITORY / "build/release/tests/sapwood_answer"))
    if not path.is_file():
        pytest.skip("sapwood_answer is not built; run scripts/test, or name it in SAPWOOD_ANSWER")
    runtime = hosts.executorch_runtime()
    assert runtime is not None
    return AnswerProgram(path, _executorch(hosts.executorch_operators_library(), runtime))


def arm64_emulator(system: Path = ARM64_SYSTEM) -> tuple[str, ...]:
    """What a program for 64-bit Arm is started with; skips the test where there is none."""
    emulator = shutil.which("qemu-aarch64-static")
    if emulator is None:
        pytest.skip("qemu-aarch64-static is not installed; it is in Debian's qemu-user-static")
    return (emulator, "-L", str(system))


def arm64_program() -> AnswerProgram:
    """The one that scripts/test_arm64 built with ExecuTorch's host, emulated; skips likewise."""
    operators = ARM64 / "runtime_cpp/src/operators/executorch/libsapwood_executorch.so"
    if not operators.is_file():
        pytest.skip("no ExecuTorch host for 64-bit Arm; run scripts/test_arm64")
    libraries = _executorch(operators, ARM64 / "executorch/lib")
    return AnswerProgram(ARM64 / "tests/sapwood_answer", libraries, arm64_emulator())


def arm64_onnxruntime_program() -> AnswerProgram:
    """The one with ONNX Runtime's host, for an emulated Cortex-A76."""
    path = ARM64 / "tests/sapwood_answer"
    found = sorted((ARM64 / "onnxruntime/capi").glob("libonnxruntime.so*"))
    if not found or not path.is_file():
        pytest.skip("no ONNX Runtime host for 64-bit Arm; run scripts/test_arm64")
    libraries = {"SAPWOOD_ONNXRUNTIME_LIBRARY": found[0]}
    return AnswerProgram(path, libraries, arm64_emulator(CORTEX_A76_SYSTEM))


def _executorch(operators: Path, runtime: Path) -> Mapping[str, Path]:
    """libsapwood_executorch.so, and the folder of libexecutorch.so."""
    return {"SAPWOOD_EXECUTORCH_LIBRARY": operators, "SAPWOOD_EXECUTORCH_RUNTIME": runtime}
