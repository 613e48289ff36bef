"""XNNPACK's flavour of whole models, and both flavours of the default one on 64-bit Arm.

With scripts/test's own bundle test_lossless.py holds the fused flavour against the native host.
"""

from __future__ import annotations

from pathlib import Path

import pytest

pytest.importorskip("executorch_programs", reason="ExecuTorch's host or export is not here")

import torch

from answer_program import arm64_program, desktop_program
from conftest import spec_bench_prompts
from english_text import english_tokens
from executorch_programs import add_program, needs_host
from promise import ALL_PROMPTS, ALL_TOKENS, QUICK_TOKENS, check_promise
from runtime_session import RuntimeSession
from sapwood import hosts
from sapwood.engine import Engine
from sapwood.errors import SapwoodError
from sapwood.manifest import read_manifest
from sapwood.tokenizer import Tokenizer
from sapwood_export.command import export
from sapwood_export.models.session import DecoderSession
from sapwood_export.models.weights import weights_from_bundle
from sapwood_export.onnx.compare import mean_divergence
from sapwood_export.packages import GEMMA3

pytestmark = [pytest.mark.slow, needs_host]


def _gemma3(folder: Path) -> Path:
    try:
        return export(f"package:{GEMMA3}", folder).output
    except SapwoodError as error:  # its weights are not installed
        pytest.skip(str(error))


@pytest.fixture(scope="module", params=["smollm2", "gemma3"])
def xnnpack(
    request: pytest.FixtureRequest, smollm2: Path, tmp_path_factory: pytest.TempPathFactory
) -> Path:
    folder = tmp_path_factory.mktemp("whole")
    bundle = smollm2 if request.param == "smollm2" else _gemma3(folder / "gemma3")
    add_program(bundle, folder / "xnnpack", "xnnpack")
    return folder / "xnnpack"


def test_every_mode_of_xnnpack_gives_the_greedy_tokens_of_its_plain_decoding(xnnpack: Path) -> None:
    engines = {"xnnpack": Engine(xnnpack, host="executorch")}
    check_promise(engines, spec_bench_prompts(ALL_PROMPTS), ALL_TOKENS)


def test_every_mode_of_xnnpack_gives_the_sampled_tokens_of_its_plain_decoding(
    xnnpack: Path,
) -> None:
    engines = {"xnnpack": Engine(xnnpack, host="executorch")}
    prompts = spec_bench_prompts(ALL_PROMPTS)
    check_promise(engines, prompts, QUICK_TOKENS, temperature=0.8, top_p=0.95, seed=5)


def test_xnnpack_stays_close_to_the_dequantised_model(xnnpack: Path) -> None:
    torch.set_num_threads(1)  # on a busy machine torch's threads wait for each other, spinning
    spec, weights = weights_from_bundle(xnnpack)
    divergence = mean_divergence(
        DecoderSession(spec, weights, slots=2048),
        RuntimeSession(hosts.open_model(xnnpack, host="executorch", threads=2), 2048),
        english_tokens(xnnpack, 2000),
    )
    print(f"mean KL {divergence:.4f} nats")
    assert 1e-4 < divergence < 0.02


@pytest.mark.parametrize("flavour", ["fused", "xnnpack"])
def test_64_bit_arm_gives_this_machines_tokens(smollm2: Path, flavour: str, tmp_path: Path) -> None:
    """A text that the model knows what to say to: XNNPACK rounds otherwise on each processor."""
    bundle = tmp_path / "bundle"
    add_program(smollm2, bundle, flavour)
    tokenizer = Tokenizer.from_bundle(bundle, read_manifest(bundle))
    prompt = tokenizer.encode("The capital of France is Paris. The capital of Italy is")
    expected = desktop_program().ids(bundle, "executorch", "plain", prompt, 8)
    for mode in ("plain", "chain", "fixed", "dynamic"):
        assert arm64_program().ids(bundle, "executorch", mode, prompt, 8) == expected
