"""What the ExecuTorch host says of programs and libraries that it cannot use: one line each."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest

pytest.importorskip("executorch_programs", reason="ExecuTorch's host or export is not here")

import torch

from executorch_programs import needs_host, operator_program, program_bundle
from sapwood import _runtime, hosts
from sapwood.errors import SapwoodError
from sapwood_export.bundle import read_manifest
from sapwood_export.bundle_writer import OPERATOR_VERSION

pytestmark = needs_host


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
            runtime=str(hosts.executorch_runtime()),
        )
    message = str(refused.value)
    assert "\n" not in message
    return message


def test_a_program_of_another_model_is_refused(tmp_path: Path) -> None:
    other = (program_bundle("gemma3") / "target.pte").read_bytes()
    message = refusal(changed(program_bundle("llama3"), tmp_path / "bundle", other))
    assert "it is not of this model; export the bundle again" in message


def test_a_program_without_our_version_is_refused(tmp_path: Path) -> None:
    program = operator_program(lambda x: (x + x,), torch.ones(2))
    message = refusal(changed(program_bundle("llama3"), tmp_path / "bundle", program))
    assert "says no operator version" in message
    assert "export the bundle again with --format executorch" in message


def test_a_program_for_an_older_version_of_the_operators_is_refused(tmp_path: Path) -> None:
    program = operator_program(lambda x: (x + x,), torch.ones(2), version=OPERATOR_VERSION - 1)
    message = refusal(changed(program_bundle("llama3"), tmp_path / "bundle", program))
    assert f"was made for version {OPERATOR_VERSION - 1} of the operators" in message


def test_a_program_of_other_inputs_is_refused(tmp_path: Path) -> None:
    program = operator_program(lambda x: (x + x,), torch.ones(2), version=OPERATOR_VERSION)
    message = refusal(changed(program_bundle("llama3"), tmp_path / "bundle", program))
    assert "takes 1 inputs, not 11: it is not of this model" in message


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
    runtime = str(hosts.executorch_runtime())
    with pytest.raises(SapwoodError, match="operators for ExecuTorch cannot be loaded from"):
        _runtime.open_executorch_model(
            bundle, threads=1, library=str(tmp_path / "none.so"), runtime=runtime
        )
    with pytest.raises(SapwoodError, match="pip: executorch"):
        _runtime.open_executorch_model(bundle, threads=1, library="", runtime=str(tmp_path))


def test_another_library_is_not_taken_for_ours() -> None:
    runtime = hosts.executorch_runtime()
    assert runtime is not None
    with pytest.raises(SapwoodError, match="is not Sapwood's library for ExecuTorch"):
        _runtime.open_executorch_model(
            str(program_bundle("llama3")),
            threads=1,
            library=str(runtime / "libexecutorch.so"),
            runtime=str(runtime),
        )
