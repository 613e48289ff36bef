"""The model on 64-bit Arm against this machine: what a phone computes is what a desktop does."""

from __future__ import annotations

import os
import subprocess
from pathlib import Path

import numpy as np
import pytest

runtime = pytest.importorskip("sapwood._runtime", reason="sapwood is not built")

from answer_program import ARM64, PROMPT, arm64_emulator  # noqa: E402
from english_text import english_tokens  # noqa: E402
from runtime_session import RuntimeSession  # noqa: E402
from sapwood_export.onnx.compare import divergences  # noqa: E402

LIMIT = 1e-4  # nats
PROCESSORS = ("max", "cortex-a76", "cortex-a53")  # neon-i8mm, neon-dotprod, neon


def mean_divergence_on_arm64(bundle: Path, tokens: list[int], processor: str) -> float:
    program = ARM64 / "tests" / "sapwood_logits"
    if not program.is_file():
        pytest.skip("sapwood_logits is not built for 64-bit Arm; run scripts/test_arm64")
    result = subprocess.run(
        [*arm64_emulator(), program, bundle, *map(str, tokens)],
        capture_output=True,
        env=os.environ | {"QEMU_CPU": processor},
        check=False,
    )
    assert (result.returncode, result.stderr) == (0, b"")
    theirs = np.frombuffer(result.stdout, np.float32).reshape(len(tokens), -1)
    model = runtime.open_native_model(str(bundle), threads=1)
    ours = RuntimeSession(model, slots=len(tokens)).extend(tokens)
    return float(divergences(ours, theirs).mean())


@pytest.mark.parametrize("processor", PROCESSORS)
def test_random_weights_give_the_desktops_distribution(tiny_bundle: Path, processor: str) -> None:
    assert abs(mean_divergence_on_arm64(tiny_bundle, list(PROMPT), processor)) < LIMIT


@pytest.mark.slow
def test_the_default_bundle_gives_the_desktops_distribution(smollm2: Path) -> None:
    tokens = english_tokens(smollm2, 64)
    found = {
        processor: mean_divergence_on_arm64(smollm2, tokens, processor) for processor in PROCESSORS
    }
    print(f"mean KL {found}")
    assert all(abs(divergence) < LIMIT for divergence in found.values())
