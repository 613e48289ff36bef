"""The ExecuTorch host and `export_executorch`: what the programs hold, compute and refuse."""

from __future__ import annotations

import ctypes
import json
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

pytest.importorskip("executorch_programs", reason="ExecuTorch's host or export is not here")

import torch

from answer_program import AnswerProgram, arm64_program, desktop_program
from conftest import Sapwood, refused
from executorch_programs import needs_host, operator_program, program_bundle
from graph_tools import SLOTS, read_and_branch
from promise import check_promise
from runtime_session import RuntimeSession
from sapwood import _runtime, hosts
from sapwood.engine import Engine
from sapwood.errors import SapwoodError
from sapwood.hosts import open_model
from sapwood_export.bundle import read_spec, verify_bundle
from sapwood_export.models.session import Logits
from sapwood_export.onnx.compare import divergences
from sapwood_export.operators.library import operators
from text_rows import text_rows

pytestmark = needs_host
FAMILIES = ("llama3", "qwen2", "gemma3")


def logits(bundle: Path, host: str) -> Logits:
    vocabulary = read_spec(bundle).vocabulary_size
    session = RuntimeSession(open_model(bundle, host=host, threads=2), SLOTS)
    return read_and_branch(session, vocabulary)


@pytest.mark.parametrize("family", FAMILIES)
def test_the_fused_flavour_has_the_bits_of_the_native_host(family: str) -> None:
    bundle = program_bundle(family)
    assert logits(bundle, "executorch").tobytes() == logits(bundle, "native").tobytes()


def test_the_fused_flavour_holds_no_weights() -> None:
    bundle = program_bundle("llama3")
    manifest = verify_bundle(bundle)
    assert manifest["target"]["executorch"] == {"file": "target.pte", "flavour": "fused"}
    assert (bundle / "target.pte").stat().st_size < 64 * 1024


@pytest.mark.parametrize(
    ("family", "flavour"), [("llama3", "fused"), ("llama3", "xnnpack"), ("gemma3", "xnnpack")]
)
def test_a_row_has_the_same_bits_whatever_stands_beside_it(family: str, flavour: str) -> None:
    bundle = program_bundle(family, flavour)
    model = open_model(bundle, host="executorch", threads=2)
    tokens = np.random.default_rng(3).integers(0, read_spec(bundle).vocabulary_size, 24).tolist()
    expected = RuntimeSession(model, SLOTS).extend(tokens)
    single = RuntimeSession(model, SLOTS)
    assert np.concatenate([single.extend([token]) for token in tokens]).tobytes() == (
        expected.tobytes()
    )


@pytest.mark.parametrize("family", ["llama3", "gemma3"])
def test_xnnpacks_linears_come_near_the_native_hosts_logits(family: str) -> None:
    bundle = program_bundle(family, "xnnpack")
    apart = divergences(logits(bundle, "native"), logits(bundle, "executorch"))
    assert 0 < apart.mean() < 0.01


@pytest.mark.parametrize("family", FAMILIES)
def test_the_fused_flavour_shows_the_native_hosts_hidden_states(family: str) -> None:
    bundle = program_bundle(family)
    found = []
    for host in ("native", "executorch"):
        model = open_model(bundle, host=host, threads=2)
        spec = model.spec
        assert model.shows_hidden_states
        model.keep_hidden_states([0, 1, spec.layers])
        kv = _runtime.KvStore.create(spec.layers, spec.kv_heads, spec.head_dim, SLOTS)
        for tokens in ([7, 8, 9], [5, 6]):
            model.forward(kv, **text_rows(tokens))
            found.append(model.hidden_states())
    assert [states.shape for states in found[:2]] == [(3, 3, 64), (2, 3, 64)]
    assert [states.tobytes() for states in found[:2]] == [states.tobytes() for states in found[2:]]


def test_xnnpacks_flavour_shows_no_hidden_states() -> None:
    model = open_model(program_bundle("llama3", "xnnpack"), host="executorch", threads=1)
    assert not model.shows_hidden_states
    with pytest.raises(SapwoodError, match="export the flavour fused, or use --host native"):
        model.keep_hidden_states([1])


@pytest.mark.parametrize("flavour", ["fused", "xnnpack"])
def test_a_pass_without_logits_is_allowed(flavour: str) -> None:
    bundle = program_bundle("llama3", flavour)
    model = open_model(bundle, host="executorch", threads=1)
    spec = model.spec
    kv = _runtime.KvStore.create(spec.layers, spec.kv_heads, spec.head_dim, SLOTS)
    result = model.forward(kv, **text_rows([1]) | {"output_rows": []})
    assert result.shape == (0, spec.vocabulary_size)


def test_a_second_copy_of_the_operators_does_no_harm(tmp_path: Path) -> None:
    """ExecuTorch ends a process that registers a name twice."""
    library = hosts.executorch_operators_library()
    copy = tmp_path / "libcopy.so"
    shutil.copy(library, copy)
    script = (
        "import ctypes, sys\n"
        "for path in sys.argv[1:]:\n"
        "    ctypes.CDLL(path, mode=ctypes.RTLD_GLOBAL)\n"
        "print('alive')\n"
    )
    runtime = hosts.executorch_runtime()
    assert runtime is not None
    libraries = [str(runtime / "libexecutorch.so"), str(library), str(copy)]
    result = subprocess.run(
        [sys.executable, "-c", script, *libraries], capture_output=True, text=True, check=False
    )
    assert (result.returncode, result.stdout) == (0, "alive\n"), result.stderr


@pytest.fixture(scope="module")
def program() -> AnswerProgram:
    return desktop_program()


@pytest.mark.parametrize("mode", ["plain", "dynamic"])
def test_a_program_without_python_gives_the_native_hosts_tokens(
    program: AnswerProgram, mode: str
) -> None:
    bundle = program_bundle("llama3")
    assert program.ids(bundle, "executorch", mode) == program.ids(bundle, "native", "plain")


def test_xnnpacks_answers_do_not_depend_on_drafts(program: AnswerProgram) -> None:
    bundle = program_bundle("llama3", "xnnpack")
    plain = program.ids(bundle, "executorch", "plain")
    for mode in ("chain", "fixed", "dynamic"):
        assert program.ids(bundle, "executorch", mode) == plain


@pytest.mark.parametrize("temperature", [0.0, 0.8])
def test_every_mode_of_xnnpack_gives_the_tokens_of_its_plain_decoding(temperature: float) -> None:
    engine = Engine(program_bundle("llama3", "xnnpack"), host="executorch", threads=2)
    check_promise({"xnnpack": engine}, ["one two one two one"], 32, temperature=temperature)


@pytest.mark.parametrize("processor", ["max", "cortex-a76", "cortex-a53"])
@pytest.mark.parametrize("flavour", ["fused", "xnnpack"])
def test_64_bit_arm_gives_this_machines_tokens(
    program: AnswerProgram, flavour: str, processor: str
) -> None:
    bundle = program_bundle("llama3", flavour)
    expected = program.ids(bundle, "executorch", "plain")
    for mode in ("plain", "dynamic"):
        assert arm64_program().ids(bundle, "executorch", mode, processor=processor) == expected


def test_neither_torch_nor_python_is_needed(program: AnswerProgram) -> None:
    theirs = ("", "_backend_xnnpack", "_kernels_optimized", "_threadpool")
    runtime = program.libraries["SAPWOOD_EXECUTORCH_RUNTIME"]
    libraries = [runtime / f"libexecutorch{part}.so" for part in theirs]
    for library in (program.path, program.libraries["SAPWOOD_EXECUTORCH_LIBRARY"], *libraries):
        listed = subprocess.run(
            ["ldd", str(library)], capture_output=True, text=True, check=True
        ).stdout
        names = {line.split()[0] for line in listed.splitlines() if line.strip()}
        assert "libc.so.6" in names
        assert not {name for name in names if name.startswith(("libtorch", "libc10", "libpython"))}


def test_both_flavours_are_timed_in_one_run(sapwood_here: Sapwood) -> None:
    fused, other, gemma = (
        program_bundle("llama3"),
        program_bundle("llama3", "xnnpack"),
        program_bundle("gemma3"),
    )
    sapwood_here("--version")  # what making them printed is not the command's
    arguments = ["bench", "kernels", fused, "--repeats", "1", "--threads", "1", "--json"]
    both = ("--hosts", "native,executorch", "--other-flavour")
    measured = json.loads(sapwood_here(*arguments, *both, other).stdout)["results"]
    models = {result["what"] for result in measured if result["what"].startswith("model")}
    assert models == {"model", "model on executorch fused", "model on executorch xnnpack"}
    compared = [result for result in measured if result["of_native"] is not None]
    assert {result["rows"] for result in compared} >= {1, 8, 16}
    assert all("executorch" in result["what"] for result in compared)

    refused(sapwood_here(*arguments, *both, fused), "holds the flavour of")
    refused(sapwood_here(*arguments, *both, gemma), "is not of the model of")
    refused(sapwood_here(*arguments, "--other-flavour", other), "add it to --hosts")


def run_in_executorchs_own_runtime(program: bytes, *inputs: torch.Tensor) -> list[torch.Tensor]:
    """Loading the library is all that ExecuTorch's Python runtime needs to run our operators."""
    pytest.importorskip("executorch.runtime")
    from executorch.runtime import Runtime

    ctypes.CDLL(str(hosts.executorch_operators_library()))
    method = Runtime.get().load_program(program).load_method("forward")
    assert method is not None
    return [torch.clone(output) for output in method.execute(inputs)]


def test_dynamic_tree_prune_keeps_what_the_reference_keeps() -> None:
    draft = torch.randn(5, 97, generator=torch.Generator().manual_seed(1)) * 3
    threshold = torch.tensor([2.5])

    def prune(logits: torch.Tensor, limit: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return tuple(operators().dynamic_tree_prune(logits, limit, None, 8, 0.3, 0.02, 0.6, 0.8))

    expected = prune(draft, threshold)
    program = operator_program(prune, draft, threshold)
    actual = run_in_executorchs_own_runtime(program, draft, threshold)
    assert torch.equal(actual[0], expected[0])
    assert torch.equal(actual[2], expected[2])
    assert torch.allclose(actual[1], expected[1], rtol=1e-5)


def test_block_sparse_verify_accepts_what_the_reference_accepts() -> None:
    generator = torch.Generator().manual_seed(2)
    target = torch.randn(4, 97, generator=generator) * 3
    draft = target + torch.randn(4, 97, generator=generator)
    mask = torch.zeros(4, 2, dtype=torch.uint8)
    mask[0], mask[1, 0] = 1, 1
    weights = torch.ones(4, 2)

    def verify(*inputs: torch.Tensor) -> tuple[torch.Tensor, ...]:
        return tuple(operators().block_sparse_verify(*inputs, None, "target_draw", 0.0))

    inputs = (target, draft, mask, weights)
    actual = run_in_executorchs_own_runtime(operator_program(verify, *inputs), *inputs)
    for given, wanted in zip(actual, verify(*inputs), strict=True):
        assert torch.equal(given, wanted)
