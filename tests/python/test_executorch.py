"""The ExecuTorch host and `export_executorch`: what the programs hold, compute and refuse."""

from __future__ import annotations

import ctypes
import json
import os
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")
pytest.importorskip("onnxruntime")
pytest.importorskip("executorch", reason="the package executorch is not installed")
pytest.importorskip("sapwood._runtime", reason="sapwood is not built")

from conftest import REPOSITORY  # noqa: E402
from executorch_programs import operator_program, program_bundle  # noqa: E402
from graph_tools import SLOTS, read_and_branch  # noqa: E402
from runtime_session import RuntimeSession  # noqa: E402
from sapwood import _runtime, hosts  # noqa: E402
from sapwood.errors import SapwoodError  # noqa: E402
from sapwood.hosts import open_model  # noqa: E402
from sapwood_export.bundle import read_manifest, read_spec, verify_bundle  # noqa: E402
from sapwood_export.models.session import Logits  # noqa: E402
from sapwood_export.onnx.compare import divergences  # noqa: E402
from sapwood_export.operators.library import operators  # noqa: E402

pytestmark = pytest.mark.skipif(
    hosts.executorch_status() is not None, reason=str(hosts.executorch_status())
)
FAMILIES = ("llama3", "qwen2", "gemma3")


def logits(bundle: Path, host: str) -> Logits:
    vocabulary = read_spec(bundle).vocabulary_size
    session = RuntimeSession(open_model(bundle, host=host, threads=2), SLOTS)
    return read_and_branch(session, vocabulary)


def changed(bundle: Path, folder: Path, program: bytes) -> Path:
    """A copy of the bundle with another program, of the size that its manifest says."""
    shutil.copytree(bundle, folder)
    (folder / "target.pte").write_bytes(program)
    manifest = read_manifest(folder)
    entry = next(entry for entry in manifest["files"] if entry["name"] == "target.pte")
    entry["bytes"] = len(program)
    (folder / "manifest.json").write_text(json.dumps(manifest))
    return folder


def refusal(bundle: Path) -> str:
    with pytest.raises(SapwoodError) as refused:
        _runtime.open_executorch_model(
            str(bundle),
            threads=1,
            verify_checksums=False,
            library=str(hosts.executorch_operators_library()),
            runtime=str(hosts._executorch_runtime()),
        )
    message = str(refused.value)
    assert "\n" not in message
    return message


@pytest.mark.parametrize("family", FAMILIES)
def test_the_fused_flavour_has_the_bits_of_the_native_host(family: str) -> None:
    bundle = program_bundle(family)
    assert logits(bundle, "executorch").tobytes() == logits(bundle, "native").tobytes()


def test_the_fused_flavour_holds_no_weights() -> None:
    bundle = program_bundle("llama3")
    manifest = verify_bundle(bundle)
    assert manifest["target"]["executorch"] == {"file": "target.pte", "flavour": "fused"}
    assert (bundle / "target.pte").stat().st_size < 64 * 1024


@pytest.mark.parametrize("flavour", ["fused", "xnnpack"])
def test_a_row_has_the_same_bits_whatever_stands_beside_it(flavour: str) -> None:
    bundle = program_bundle("llama3", flavour)
    model = open_model(bundle, host="executorch", threads=2)
    tokens = np.random.default_rng(3).integers(0, read_spec(bundle).vocabulary_size, 24).tolist()
    expected = RuntimeSession(model, SLOTS).extend(tokens)
    single = RuntimeSession(model, SLOTS)
    assert np.concatenate([single.extend([token]) for token in tokens]).tobytes() == (
        expected.tobytes()
    )


def test_xnnpacks_linears_come_near_the_native_hosts_logits() -> None:
    bundle = program_bundle("llama3", "xnnpack")
    apart = divergences(logits(bundle, "native"), logits(bundle, "executorch"))
    assert 0 < apart.mean() < 0.01


@pytest.mark.parametrize("flavour", ["fused", "xnnpack"])
def test_a_pass_without_logits_is_allowed(flavour: str) -> None:
    bundle = program_bundle("llama3", flavour)
    model = open_model(bundle, host="executorch", threads=1)
    spec = model.spec
    kv = _runtime.KvStore.create(spec.layers, spec.kv_heads, spec.head_dim, SLOTS)
    result = model.forward(
        kv,
        tokens=[1],
        positions=[0],
        slots=[0],
        context_slots=[],
        path_slots=[0],
        path_begin=[0],
        path_end=[1],
        output_rows=[],
    )
    assert result.shape == (0, spec.vocabulary_size)


def test_a_program_of_another_model_is_refused(tmp_path: Path) -> None:
    other = (program_bundle("gemma3") / "target.pte").read_bytes()
    message = refusal(changed(program_bundle("llama3"), tmp_path / "bundle", other))
    assert "it is not of this model; export the bundle again" in message


def test_a_program_without_our_version_is_refused(tmp_path: Path) -> None:
    program = operator_program(lambda x: (x + x,), torch.ones(2))
    message = refusal(changed(program_bundle("llama3"), tmp_path / "bundle", program))
    assert "says no operator version" in message
    assert "export the bundle again with --format executorch" in message


def test_a_program_for_operators_of_another_name_is_refused(tmp_path: Path) -> None:
    program = (program_bundle("llama3") / "target.pte").read_bytes()
    older = program.replace(b"sapwood::output_head", b"sapwood::output_hea_")
    assert older != program
    message = refusal(changed(program_bundle("llama3"), tmp_path / "bundle", older))
    assert "needs an operator that this build does not have" in message


@pytest.mark.parametrize("share", [0.0, 0.01, 0.5, 0.99])
def test_a_truncated_program_is_refused(share: float, tmp_path: Path) -> None:
    program = (program_bundle("llama3") / "target.pte").read_bytes()
    cut = program[: int(share * len(program))]
    message = refusal(changed(program_bundle("llama3"), tmp_path / "bundle", cut))
    assert "target.pte" in message


def test_a_bundle_without_a_program_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "bundle"
    shutil.copytree(program_bundle("llama3"), folder)
    manifest = read_manifest(folder)
    del manifest["target"]["executorch"]
    (folder / "manifest.json").write_text(json.dumps(manifest))
    assert "export it with --format executorch" in refusal(folder)


def test_an_unknown_flavour_is_refused(tmp_path: Path) -> None:
    folder = tmp_path / "bundle"
    shutil.copytree(program_bundle("llama3"), folder)
    manifest = read_manifest(folder)
    manifest["target"]["executorch"]["flavour"] = "marbled"
    (folder / "manifest.json").write_text(json.dumps(manifest))
    assert "target.executorch.flavour" in refusal(folder)


def test_missing_libraries_are_named_with_what_to_do(tmp_path: Path) -> None:
    bundle = str(program_bundle("llama3"))
    runtime = str(hosts._executorch_runtime())
    with pytest.raises(SapwoodError, match="operators for ExecuTorch cannot be loaded from"):
        _runtime.open_executorch_model(
            bundle, threads=1, library=str(tmp_path / "none.so"), runtime=runtime
        )
    with pytest.raises(SapwoodError, match="pip: executorch"):
        _runtime.open_executorch_model(bundle, threads=1, library="", runtime=str(tmp_path))


def test_another_library_is_not_taken_for_ours() -> None:
    runtime = hosts._executorch_runtime()
    assert runtime is not None
    with pytest.raises(SapwoodError, match="is not Sapwood's library for ExecuTorch"):
        _runtime.open_executorch_model(
            str(program_bundle("llama3")),
            threads=1,
            library=str(runtime / "libexecutorch.so"),
            runtime=str(runtime),
        )


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
    runtime = hosts._executorch_runtime()
    assert runtime is not None
    libraries = [str(runtime / "libexecutorch.so"), str(library), str(copy)]
    result = subprocess.run(
        [sys.executable, "-c", script, *libraries], capture_output=True, text=True, check=False
    )
    assert (result.returncode, result.stdout) == (0, "alive\n"), result.stderr


@pytest.fixture(scope="module")
def program() -> Path:
    """A C++ program over the C interface, which scripts/test has built."""
    path = Path(os.environ.get("SAPWOOD_ANSWER", REPOSITORY / "build/release/tests/sapwood_answer"))
    if not path.is_file():
        pytest.skip("sapwood_answer is not built; run scripts/test, or name it in SAPWOOD_ANSWER")
    return path


def answer(program: Path, bundle: Path, host: str, mode: str) -> list[int]:
    prompt = [str(token) for token in (1, 5, 9, 5, 9, 5)]
    environment = os.environ | {
        "SAPWOOD_EXECUTORCH_LIBRARY": str(hosts.executorch_operators_library()),
        "SAPWOOD_EXECUTORCH_RUNTIME": str(hosts._executorch_runtime()),
    }
    result = subprocess.run(
        [program, bundle, host, mode, "24", *prompt],
        capture_output=True,
        text=True,
        env=environment,
        check=False,
    )
    assert (result.returncode, result.stderr) == (0, "")
    tokens = [int(token) for token in result.stdout.split()]
    assert len(tokens) == 24
    return tokens


@pytest.mark.parametrize("mode", ["plain", "dynamic"])
def test_a_program_without_python_gives_the_native_hosts_tokens(program: Path, mode: str) -> None:
    bundle = program_bundle("llama3")
    expected = answer(program, bundle, "native", "plain")
    assert answer(program, bundle, "executorch", mode) == expected


def test_xnnpacks_answers_do_not_depend_on_drafts(program: Path) -> None:
    bundle = program_bundle("llama3", "xnnpack")
    plain = answer(program, bundle, "executorch", "plain")
    for mode in ("chain", "fixed", "dynamic"):
        assert answer(program, bundle, "executorch", mode) == plain


def test_neither_torch_nor_python_is_needed(program: Path) -> None:
    runtime = hosts._executorch_runtime()
    assert runtime is not None
    ours = (program, hosts.executorch_operators_library())
    theirs = ("", "_backend_xnnpack", "_kernels_optimized", "_threadpool")
    for library in (*ours, *(runtime / f"libexecutorch{part}.so" for part in theirs)):
        listed = subprocess.run(
            ["ldd", str(library)], capture_output=True, text=True, check=True
        ).stdout
        names = {line.split()[0] for line in listed.splitlines() if line.strip()}
        assert "libc.so.6" in names
        assert not {name for name in names if name.startswith(("libtorch", "libc10", "libpython"))}


class TestOperatorsInExecutorchsOwnRuntime:
    """Loading the library is all that ExecuTorch's Python runtime needs to run our operators."""

    @pytest.fixture(scope="class", autouse=True)
    def _loaded(self) -> None:
        pytest.importorskip("executorch.runtime")
        ctypes.CDLL(str(hosts.executorch_operators_library()))

    def run(self, program: bytes, *inputs: torch.Tensor) -> list[torch.Tensor]:
        from executorch.runtime import Runtime

        method = Runtime.get().load_program(program).load_method("forward")
        assert method is not None
        return [torch.clone(output) for output in method.execute(inputs)]

    def test_dynamic_tree_prune_keeps_what_the_reference_keeps(self) -> None:
        draft = torch.randn(5, 97, generator=torch.Generator().manual_seed(1)) * 3
        threshold = torch.tensor([2.5])

        def prune(logits: torch.Tensor, limit: torch.Tensor) -> tuple[torch.Tensor, ...]:
            return tuple(
                operators().dynamic_tree_prune(logits, limit, None, 8, 0.3, 0.02, 0.6, 0.8)
            )

        expected = prune(draft, threshold)
        actual = self.run(operator_program(prune, draft, threshold), draft, threshold)
        assert torch.equal(actual[0], expected[0])
        assert torch.equal(actual[2], expected[2])
        assert torch.allclose(actual[1], expected[1], rtol=1e-5)

    def test_block_sparse_verify_accepts_what_the_reference_accepts(self) -> None:
        generator = torch.Generator().manual_seed(2)
        target = torch.randn(4, 97, generator=generator) * 3
        draft = target + torch.randn(4, 97, generator=generator)
        mask = torch.zeros(4, 2, dtype=torch.uint8)
        mask[0], mask[1, 0] = 1, 1
        weights = torch.ones(4, 2)

        def verify(*inputs: torch.Tensor) -> tuple[torch.Tensor, ...]:
            return tuple(operators().block_sparse_verify(*inputs, None, "target_draw", 0.0))

        inputs = (target, draft, mask, weights)
        actual = self.run(operator_program(verify, *inputs), *inputs)
        for given, wanted in zip(actual, verify(*inputs), strict=True):
            assert torch.equal(given, wanted)
