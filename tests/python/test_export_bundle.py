"""Bundles appear whole or not at all, and a bundle that was changed is refused."""

from __future__ import annotations

import errno
import hashlib
import json
import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import sapwood_export.command
from sapwood.errors import SapwoodError
from sapwood_export.bundle import (
    load_bundle_weights,
    read_dequantized,
    read_manifest,
    verify_bundle,
)
from sapwood_export.command import export
from sapwood_export.staging import MANIFEST, staged_folder
from tiny_models import tiny_config, tiny_weights, write_folder, write_gguf


@pytest.fixture
def model(tmp_path: Path) -> Path:
    config = tiny_config("llama")
    return write_folder(tmp_path / "model", config, tiny_weights(config))


@pytest.fixture
def bundle(tmp_path: Path, model: Path) -> Path:
    return export(model, tmp_path / "bundle").output


def neighbours(path: Path) -> set[str]:
    return {entry.name for entry in path.parent.iterdir()}


def refusal(action: Callable[[], Any]) -> str:
    with pytest.raises(SapwoodError) as caught:
        action()
    message = str(caught.value)
    assert "\n" not in message
    return message


def test_the_manifest_follows_the_contract(bundle: Path) -> None:
    manifest = read_manifest(bundle)
    assert list(manifest) == [
        "schema_version",
        "sapwood_version",
        "name",
        "source",
        "target",
        "tokenizer",
        "quantization",
        "operators",
        "numerics",
        "drafters",
        "defaults",
        "files",
    ]
    assert manifest["schema_version"] == 1
    assert manifest["source"] == {"kind": "huggingface", "file": "model"}
    assert manifest["defaults"] == {"mode": "dynamic", "context_length": 256}
    assert manifest["target"]["onnx"] is None
    assert {entry["name"] for entry in manifest["files"]} | {"manifest.json"} == {
        path.name for path in bundle.iterdir()
    }


def test_every_file_but_the_manifest_is_listed_with_its_checksum(bundle: Path) -> None:
    for entry in read_manifest(bundle)["files"]:
        content = (bundle / entry["name"]).read_bytes()
        assert entry["bytes"] == len(content)
        assert entry["sha256"] == hashlib.sha256(content).hexdigest()


def test_tensors_are_aligned_and_do_not_overlap(bundle: Path) -> None:
    end = 0
    for entry in read_manifest(bundle)["target"]["tensors"].values():
        assert entry["offset"] % 64 == 0
        assert entry["offset"] >= end
        end = entry["offset"] + entry["bytes"]
    assert end <= (bundle / "target.weights").stat().st_size


def test_one_tensor_and_all_tensors_read_the_same(bundle: Path) -> None:
    everything = load_bundle_weights(bundle)
    for name in ("embedding", "layers.1.gate_up", "final_norm"):
        assert np.array_equal(read_dequantized(bundle, name), everything[name])
    assert "has no tensor 'head'" in refusal(lambda: read_dequantized(bundle, "head"))


def test_progress_grows_to_the_total(tmp_path: Path, model: Path) -> None:
    steps: list[tuple[str, int, int]] = []
    export(model, tmp_path / "bundle", progress=lambda *step: steps.append(step))
    done = [count for stage, count, _ in steps if stage == "weights"]
    assert done == sorted(done)
    assert done[-1] <= steps[-1][2] <= done[-1] + 64


def test_an_existing_output_is_kept_without_force(bundle: Path, model: Path) -> None:
    before = (bundle / "manifest.json").read_bytes()
    message = refusal(lambda: export(model, bundle, quantization="int8_g32"))
    assert "exists; use --force" in message
    assert (bundle / "manifest.json").read_bytes() == before


def test_force_replaces_a_bundle_and_leaves_nothing_else(bundle: Path, model: Path) -> None:
    before = neighbours(bundle)
    (bundle / "left over").write_text("x")
    export(model, bundle, quantization="int8_g32", force=True)
    assert neighbours(bundle) == before
    assert not (bundle / "left over").exists()
    assert "int4_g32_min" not in read_manifest(bundle)["quantization"]["by_format"]


def test_force_does_not_replace_what_is_no_bundle(tmp_path: Path, model: Path) -> None:
    precious = tmp_path / "home"
    precious.mkdir()
    (precious / "thesis.txt").write_text("years of work")
    message = refusal(lambda: export(model, precious, force=True))
    assert "is not a bundle, so it is not replaced" in message
    assert (precious / "thesis.txt").read_text() == "years of work"
    assert "is not a folder" in refusal(lambda: export(model, precious / "thesis.txt", force=True))


def test_a_failed_replacement_keeps_the_old_bundle(bundle: Path, tmp_path: Path) -> None:
    before = neighbours(bundle)
    config = tiny_config("llama")
    weights = tiny_weights(config)
    weights["model.layers.1.mlp.down_proj.weight"][0, 0] = np.nan
    broken = write_folder(tmp_path / "model", config, weights)
    refusal(lambda: export(broken, bundle, force=True))
    assert neighbours(bundle) == before
    verify_bundle(bundle)


def test_missing_parent_folders_are_made(tmp_path: Path, model: Path) -> None:
    verify_bundle(export(model, tmp_path / "a" / "b" / "bundle").output)


def test_a_full_disk_is_one_line_and_leaves_nothing(
    tmp_path: Path, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def full(*_: Any) -> Any:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    before = neighbours(model)
    monkeypatch.setattr(sapwood_export.command, "write_tokenizer", full)
    message = refusal(lambda: export(model, tmp_path / "bundle"))
    assert "no space left on the disk; nothing was written" in message
    assert neighbours(model) == before


def test_a_disk_that_is_too_small_is_noticed_before_anything_is_written(
    tmp_path: Path, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    class Usage:
        free = 1000

    before = neighbours(model)
    monkeypatch.setattr("shutil.disk_usage", lambda path: Usage)
    message = refusal(lambda: export(model, tmp_path / "bundle"))
    assert "no space left: " in message
    assert "0.0 MB are free" in message
    assert neighbours(model) == before


@pytest.mark.skipif(os.geteuid() != 0, reason="mounting a small disk needs root")
def test_a_disk_that_is_really_full_is_one_line(tmp_path: Path) -> None:
    config = tiny_config("llama", hidden_size=256, intermediate_size=512)
    model = write_folder(tmp_path / "model", config, tiny_weights(config))
    disk = tmp_path / "disk"
    disk.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=256k", "tmpfs", str(disk)]
    if subprocess.run(mount, capture_output=True, check=False).returncode != 0:
        pytest.skip("no permission to mount a small disk here")
    try:
        # The check before writing is switched off: another program may fill the disk meanwhile.
        code = (
            "import sys, pathlib, sapwood_export.command as c\n"
            "from sapwood.errors import SapwoodError\n"
            "c.check_space = lambda *a: None\n"
            "try: c.export(sys.argv[1], pathlib.Path(sys.argv[2]))\n"
            "except SapwoodError as error: print(error)\n"
        )
        done = subprocess.run(
            [sys.executable, "-c", code, str(model), str(disk / "bundle")],
            capture_output=True,
            text=True,
            check=True,
        )
        assert "no space left on the disk; nothing was written" in done.stdout
        assert list(disk.iterdir()) == []
    finally:
        subprocess.run(["umount", str(disk)], check=True)


def test_an_interrupt_leaves_nothing(tmp_path: Path, model: Path) -> None:
    before = neighbours(model)
    seen: list[int] = []

    def interrupt(stage: str, done: int, total: int) -> None:
        seen.append(done)
        if len(seen) == 3:
            raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        export(model, tmp_path / "bundle", progress=interrupt)
    assert neighbours(model) == before


@contextmanager
def export_in_the_middle(model: Path, output: Path) -> Iterator[subprocess.Popen[str]]:
    """A process of its own that has begun to write."""
    code = (
        "import sys, time, pathlib\n"
        "from sapwood_export.command import export\n"
        "def slowly(*step):\n"
        "    print('writing', flush=True)\n"
        "    time.sleep(0.2)\n"
        "export(sys.argv[1], pathlib.Path(sys.argv[2]), progress=slowly)\n"
    )
    with subprocess.Popen(
        [sys.executable, "-c", code, str(model), str(output)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stdout is not None
        assert process.stdout.readline() == "writing\n"
        assert any(name.startswith(".bundle.partial-") for name in neighbours(output))
        yield process


def test_control_c_in_the_middle_of_an_export_leaves_nothing(tmp_path: Path, model: Path) -> None:
    output = tmp_path / "bundle"
    with export_in_the_middle(model, output) as process:
        process.send_signal(signal.SIGINT)
        process.communicate(timeout=30)
        assert process.returncode != 0
    assert not any("bundle" in name for name in neighbours(output))


def test_what_a_killed_export_left_goes_with_the_next_one(tmp_path: Path, model: Path) -> None:
    output = tmp_path / "bundle"
    other = tmp_path / ".bundle2.partial-x"  # of another output
    other.mkdir()
    with export_in_the_middle(model, output) as process:
        process.kill()
        process.communicate(timeout=30)
    assert any(name.startswith(".bundle.partial-") for name in neighbours(output))
    export(model, output)
    assert {name for name in neighbours(output) if "bundle" in name} == {"bundle", other.name}


def test_an_export_leaves_one_that_still_runs_alone(tmp_path: Path, model: Path) -> None:
    output = tmp_path / "bundle"
    with export_in_the_middle(model, output) as process:
        running = {name for name in neighbours(output) if ".partial-" in name}
        with staged_folder(output, force=True):
            assert running < {name for name in neighbours(output) if ".partial-" in name}
        assert running <= neighbours(output)
        process.kill()
        process.communicate(timeout=30)


def test_a_bundle_that_a_killed_export_had_moved_away_comes_back(
    tmp_path: Path, bundle: Path
) -> None:
    manifest = (bundle / MANIFEST).read_bytes()
    away = bundle.parent / f".{bundle.name}.previous-x" / bundle.name
    away.parent.mkdir()
    bundle.rename(away)
    with pytest.raises(SapwoodError, match="use --force"), staged_folder(bundle, force=False):
        pass
    assert (bundle / MANIFEST).read_bytes() == manifest
    assert not away.parent.exists()


def test_a_folder_that_cannot_be_written_is_one_line(
    tmp_path: Path, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(**_: Any) -> str:
        raise OSError(errno.EACCES, os.strerror(errno.EACCES))

    blocker = tmp_path / "file"
    blocker.write_text("")
    message = refusal(lambda: export(model, blocker / "bundle"))
    assert f"{blocker} is not a folder" in message
    monkeypatch.setattr("tempfile.mkdtemp", refuse)
    message = refusal(lambda: export(model, tmp_path / "bundle"))
    assert "bundle: cannot be written: Permission denied; nothing was written" in message


def change_manifest(bundle: Path, change: Callable[[dict[str, Any]], Any]) -> None:
    path = bundle / "manifest.json"
    manifest = json.loads(path.read_text())
    change(manifest)
    path.write_text(json.dumps(manifest))


def test_a_tampered_file_is_named(bundle: Path) -> None:
    verify_bundle(bundle)
    for name in ("target.weights", "tokenizer.json", "chat_template.jinja"):
        path = bundle / name
        content = bytearray(path.read_bytes())
        content[len(content) // 2] ^= 1
        path.write_bytes(content)
        assert f"{name}: the checksum does not match" in refusal(lambda: verify_bundle(bundle))
        content[len(content) // 2] ^= 1
        path.write_bytes(content)
    verify_bundle(bundle)


def test_a_truncated_weights_file_is_named(bundle: Path) -> None:
    path = bundle / "target.weights"
    path.write_bytes(path.read_bytes()[:-64])
    message = refusal(lambda: verify_bundle(bundle))
    assert "target.weights: " in message
    assert "truncated or changed" in message
    assert "lies outside the weights file" in refusal(
        lambda: read_dequantized(bundle, list(read_manifest(bundle)["target"]["tensors"])[-1])
    )


def test_a_missing_file_is_named(bundle: Path) -> None:
    (bundle / "tokenizer.json").unlink()
    assert "tokenizer.json: the file is missing" in refusal(lambda: verify_bundle(bundle))


def test_a_newer_schema_asks_for_a_newer_program(bundle: Path) -> None:
    change_manifest(bundle, lambda manifest: manifest.update(schema_version=2))
    message = refusal(lambda: read_manifest(bundle))
    assert "schema version 2 is newer than this Sapwood, which reads up to 1" in message


@pytest.mark.parametrize("version", [None, "1", 0, True, 1.0])
def test_a_schema_version_that_is_none_is_refused(bundle: Path, version: Any) -> None:
    change_manifest(bundle, lambda manifest: manifest.update(schema_version=version))
    assert "no valid schema_version" in refusal(lambda: read_manifest(bundle))


@pytest.mark.parametrize("name", ["../model/config.json", "/etc/passwd", "manifest.json", ""])
def test_a_file_list_that_leaves_the_bundle_is_refused(bundle: Path, name: str) -> None:
    entry = {"name": name, "bytes": 1, "sha256": "0" * 64}
    change_manifest(bundle, lambda manifest: manifest["files"].append(entry))
    assert f"'{name}', which is outside the bundle" in refusal(lambda: verify_bundle(bundle))


@pytest.mark.parametrize(
    ("change", "words"),
    [
        ({"offset": 32}, "unaligned"),
        ({"offset": -64}, "lies outside"),
        ({"offset": 1 << 40}, "lies outside"),
        ({"shape": [512, 96]}, "its shape needs"),
        ({"shape": [512, 65]}, "cannot have the shape"),
        ({"shape": [512, -64]}, "is damaged"),
        ({"shape": "large"}, "is damaged"),
        ({"format": "int3"}, "unknown quantisation format 'int3'"),
        ({"bytes": 10}, "has 10 bytes in the manifest"),
    ],
)
def test_a_tensor_entry_that_cannot_be_is_refused(
    bundle: Path, change: dict[str, Any], words: str
) -> None:
    change_manifest(
        bundle, lambda manifest: manifest["target"]["tensors"]["embedding"].update(change)
    )
    assert words in refusal(lambda: verify_bundle(bundle))
    assert words in refusal(lambda: read_dequantized(bundle, "embedding"))


def test_what_is_no_bundle_is_refused(tmp_path: Path) -> None:
    assert "no such bundle" in refusal(lambda: read_manifest(tmp_path / "absent"))
    assert "not a bundle: it has no manifest.json" in refusal(lambda: read_manifest(tmp_path))
    for content in ("{", "[]", '"x"', '{"schema_version": 1}', "\x00"):
        (tmp_path / "manifest.json").write_text(content)
        assert "manifest.json" in refusal(lambda: read_manifest(tmp_path))


def test_options_that_cannot_be_are_refused(tmp_path: Path, model: Path) -> None:
    output = tmp_path / "bundle"
    cases: list[tuple[dict[str, Any], str]] = [
        ({"format": "pte"}, "unknown bundle format 'pte'; known are native, onnx"),
        ({"format": "onnx", "flavour": "pink"}, "unknown flavour 'pink'; known are fused, xnnpack"),
        ({"flavour": "xnnpack"}, "a flavour is of a program for ExecuTorch"),
        ({"quantization": "q4"}, "unknown quantisation format 'q4'"),
        ({"context_length": 0}, "context length of 0 is not within the model's 1 to 256"),
        ({"context_length": 257}, "context length of 257 is not within the model's 1 to 256"),
    ]
    for options, words in cases:
        assert words in refusal(lambda options=options: export(model, output, **options))
    assert not output.exists()


def test_the_default_context_is_the_contracts_or_the_models(tmp_path: Path) -> None:
    config = tiny_config("llama", max_position_embeddings=8192)
    path = write_gguf(tmp_path / "m.gguf", config, tiny_weights(config))
    manifest = export(path, tmp_path / "a").manifest
    assert manifest["defaults"]["context_length"] == 2048
    manifest = export(path, tmp_path / "b", context_length=8192).manifest
    assert manifest["defaults"]["context_length"] == 8192


def test_without_torch_the_onnx_format_says_what_to_install(
    tmp_path: Path, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("importlib.util.find_spec", lambda name: None)
    message = refusal(lambda: export(model, tmp_path / "bundle", format="onnx"))
    assert "needs torch, onnx, onnxscript, onnxsim: pip install 'sapwood[onnx]'" in message


def test_exporting_a_native_bundle_imports_neither_torch_nor_onnx(
    tmp_path: Path, model: Path
) -> None:
    code = (
        "import sys, pathlib\n"
        "from sapwood_export.command import export\n"
        "export(sys.argv[1], pathlib.Path(sys.argv[2]))\n"
        "heavy = {'torch', 'onnx', 'onnxruntime', 'transformers', 'gguf'} & set(sys.modules)\n"
        "print(*sorted(heavy))\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(model), str(tmp_path / "bundle")],
        capture_output=True,
        text=True,
        check=False,
    )
    assert (done.stdout, done.stderr, done.returncode) == ("\n", "", 0)


def test_an_onnx_export_that_fails_leaves_nothing(
    tmp_path: Path, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The graph is written before the bundle gets its name."""
    graph = pytest.importorskip("sapwood_export.onnx.command")
    before = neighbours(model)

    def fail(folder: Path, progress: Any) -> None:
        assert (folder / "manifest.json").is_file()
        (folder / "target.onnx").write_bytes(b"half")
        raise SapwoodError("no graph today")

    monkeypatch.setattr(graph, "export_onnx", fail)
    monkeypatch.setattr(sapwood_export.command, "_require_packages", lambda graph: None)
    assert refusal(lambda: export(model, tmp_path / "bundle", format="onnx")) == "no graph today"
    assert neighbours(model) == before


def test_an_onnx_graph_becomes_part_of_the_bundle(
    tmp_path: Path, model: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    graph = pytest.importorskip("sapwood_export.onnx.command")
    monkeypatch.setattr(
        graph, "export_onnx", lambda folder, progress: (folder / "target.onnx").write_bytes(b"g")
    )
    monkeypatch.setattr(sapwood_export.command, "_require_packages", lambda graph: None)
    export(model, tmp_path / "bundle", format="onnx")
    manifest = verify_bundle(tmp_path / "bundle")
    assert manifest["target"]["onnx"] == "target.onnx"
    assert manifest["files"][-1]["name"] == "target.onnx"
