"""Bad input through the real command line: one line, the right status, nothing half-written."""

from __future__ import annotations

import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from conftest import Sapwood, refused
from sapwood_export.packages import default_source
from tiny_models import tiny_config, tiny_weights, write_folder, write_gguf

Edit = Callable[[dict[str, Any]], None]


@pytest.fixture
def bundle(tiny_bundle: Path, tmp_path: Path) -> Path:
    """A bundle of one's own, to damage."""
    return Path(shutil.copytree(tiny_bundle, tmp_path / "bundle"))


@pytest.fixture(scope="module")
def gguf_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    config = tiny_config("llama")
    return write_gguf(tmp_path_factory.mktemp("gguf") / "tiny.gguf", config, tiny_weights(config))


def edit_manifest(bundle: Path, edit: Edit) -> None:
    path = bundle / "manifest.json"
    document = json.loads(path.read_text())
    edit(document)
    path.write_text(json.dumps(document))


def generate(sapwood: Sapwood, bundle: Path, *options: str) -> subprocess.CompletedProcess[str]:
    return sapwood(
        "generate",
        bundle,
        "--prompt",
        "a tree",
        "--threads",
        "1",
        "--max-new-tokens",
        "4",
        *options,
    )


def export_refused(sapwood: Sapwood, source: Path, tmp_path: Path, *parts: str) -> None:
    """The export is refused and leaves its output's folder as it was."""
    folder = tmp_path / "out"
    folder.mkdir()
    refused(sapwood("export", source, "--output", folder / "bundle"), *parts)
    assert list(folder.iterdir()) == []


# ---- sources ------------------------------------------------------------------------------------


@pytest.mark.parametrize("kept", [3, 20, 200, 0.5, 0.99])
def test_a_truncated_gguf_is_refused(
    sapwood: Sapwood, gguf_file: Path, tmp_path: Path, kept: float
) -> None:
    whole = gguf_file.read_bytes()
    size = int(len(whole) * kept) if kept < 1 else int(kept)
    source = tmp_path / "cut.gguf"
    source.write_bytes(whole[:size])
    export_refused(sapwood, source, tmp_path, "cut.gguf")


def test_a_gguf_with_another_magic_is_refused(
    sapwood: Sapwood, gguf_file: Path, tmp_path: Path
) -> None:
    source = tmp_path / "wrong.gguf"
    source.write_bytes(b"GGML" + gguf_file.read_bytes()[4:])
    export_refused(sapwood, source, tmp_path, "wrong.gguf")


def test_a_gguf_tensor_out_of_bounds_is_named(
    sapwood: Sapwood, gguf_file: Path, tmp_path: Path
) -> None:
    data = bytearray(gguf_file.read_bytes())
    name = b"blk.1.ffn_down.weight"
    at = data.index(name) + len(name)
    dimensions = int.from_bytes(data[at : at + 4], "little")
    offset_at = at + 4 + 8 * dimensions + 4
    data[offset_at : offset_at + 8] = (1 << 40).to_bytes(8, "little")
    source = tmp_path / "beyond.gguf"
    source.write_bytes(data)
    export_refused(sapwood, source, tmp_path, "beyond.gguf", name.decode())


def test_an_unknown_family_is_named(sapwood: Sapwood, tmp_path: Path) -> None:
    config = tiny_config("llama")
    weights = tiny_weights(config)
    source = write_folder(tmp_path / "source", {**config, "model_type": "mamba"}, weights)
    export_refused(sapwood, source, tmp_path, "mamba")


def test_a_missing_shard_is_named(sapwood: Sapwood, tmp_path: Path) -> None:
    config = tiny_config("llama")
    source = write_folder(tmp_path / "source", config, tiny_weights(config), shards=3)
    (source / "model-00002-of-00003.safetensors").unlink()
    export_refused(sapwood, source, tmp_path, "model-00002-of-00003.safetensors")


def test_a_truncated_safetensors_file_is_named(sapwood: Sapwood, tmp_path: Path) -> None:
    config = tiny_config("llama")
    source = write_folder(tmp_path / "source", config, tiny_weights(config))
    file = source / "model.safetensors"
    file.write_bytes(file.read_bytes()[:-100])
    export_refused(sapwood, source, tmp_path, "model.safetensors")


def test_a_source_without_a_tokenizer_is_refused(sapwood: Sapwood, tmp_path: Path) -> None:
    config = tiny_config("llama")
    source = write_folder(tmp_path / "source", config, tiny_weights(config))
    (source / "tokenizer.json").unlink()
    export_refused(sapwood, source, tmp_path, "tokenizer")


def test_a_source_that_is_not_there_is_refused(sapwood: Sapwood, tmp_path: Path) -> None:
    export_refused(sapwood, tmp_path / "nowhere", tmp_path, "nowhere")


def test_an_output_that_exists_is_left_alone(
    sapwood: Sapwood, tiny_source: Path, tmp_path: Path
) -> None:
    output = tmp_path / "bundle"
    output.mkdir()
    (output / "letters.txt").write_text("mine")
    refused(sapwood("export", tiny_source, "--output", output), "bundle", "--force")
    refused(sapwood("export", tiny_source, "--output", output, "--force"), "not a bundle")
    assert [file.name for file in output.iterdir()] == ["letters.txt"]


# ---- bundles ------------------------------------------------------------------------------------


def test_a_tampered_file_is_refused_by_its_checksum(sapwood: Sapwood, bundle: Path) -> None:
    file = bundle / "target.weights"
    data = bytearray(file.read_bytes())
    data[len(data) // 2] ^= 1
    file.write_bytes(data)
    refused(generate(sapwood, bundle), "target.weights", "checksum")
    refused(sapwood("inspect", bundle), "target.weights", "checksum")


def test_a_tampered_chat_template_is_refused_by_its_checksum(
    sapwood: Sapwood, bundle: Path
) -> None:
    file = bundle / "chat_template.jinja"
    text = file.read_text()
    file.write_text(text[:-1] + chr(ord(text[-1]) ^ 1))
    refused(generate(sapwood, bundle), "chat_template.jinja", "checksum")


def test_a_truncated_weights_file_is_refused(sapwood: Sapwood, bundle: Path) -> None:
    file = bundle / "target.weights"
    file.write_bytes(file.read_bytes()[:-64])
    refused(generate(sapwood, bundle), "target.weights")


def test_a_newer_schema_is_refused(sapwood: Sapwood, bundle: Path) -> None:
    edit_manifest(bundle, lambda document: document.update(schema_version=2))
    refused(generate(sapwood, bundle), "manifest.json", "2", "newer")


def test_a_missing_tokenizer_is_named(sapwood: Sapwood, bundle: Path) -> None:
    (bundle / "tokenizer.json").unlink()
    refused(generate(sapwood, bundle), "tokenizer.json")


def test_a_tokenizer_that_is_none_is_named(sapwood: Sapwood, bundle: Path) -> None:
    replace_file(bundle, "tokenizer.json", b'{"version": "1.0"}')
    refused(generate(sapwood, bundle), "tokenizer.json")


def test_a_broken_chat_template_names_its_line(sapwood: Sapwood, bundle: Path) -> None:
    replace_file(bundle, "chat_template.jinja", b"one\n{% for %}\n")
    refused(generate(sapwood, bundle), "chat_template.jinja", "line 2")


def replace_file(bundle: Path, name: str, data: bytes) -> None:
    """Writes a file and makes the manifest agree, so that only the content is wrong."""
    (bundle / name).write_bytes(data)

    def edit(document: dict[str, Any]) -> None:
        for entry in document["files"]:
            if entry["name"] == name:
                entry |= {"bytes": len(data), "sha256": hashlib.sha256(data).hexdigest()}

    edit_manifest(bundle, edit)


@pytest.mark.parametrize(
    ("edit", "named"),
    [
        (lambda d: d["target"]["spec"].update(family="mamba"), "mamba"),
        (lambda d: d["target"]["spec"].update(layers=10**9), "layers"),
        (lambda d: d["target"]["tensors"]["layers.0.qkv"].update(offset=1 << 40), "layers.0.qkv"),
        (lambda d: d["target"]["tensors"]["layers.0.qkv"].update(offset=-64), "layers.0.qkv"),
        (lambda d: d["target"]["tensors"]["layers.1.down"].update(shape=[1, 32]), "layers.1.down"),
        (lambda d: d["target"]["tensors"].pop("final_norm"), "final_norm"),
        (lambda d: d["files"][0].update(name="../outside"), "../outside"),
        (lambda d: d.pop("target"), "target"),
    ],
)
def test_a_hostile_manifest_is_refused_by_name(
    sapwood: Sapwood, bundle: Path, edit: Edit, named: str
) -> None:
    edit_manifest(bundle, edit)
    refused(generate(sapwood, bundle), "manifest.json", named)


@pytest.mark.parametrize("content", [b"", b"{", b"[]", b"null", b"\xff\xfe", b"[" * 100_000])
def test_a_manifest_that_is_none_is_refused(sapwood: Sapwood, bundle: Path, content: bytes) -> None:
    (bundle / "manifest.json").write_bytes(content)
    refused(generate(sapwood, bundle), "manifest.json")
    refused(sapwood("inspect", bundle), "manifest.json")


def test_a_folder_that_is_no_bundle_is_refused(sapwood: Sapwood, tmp_path: Path) -> None:
    refused(generate(sapwood, tmp_path), str(tmp_path))
    refused(generate(sapwood, tmp_path / "nowhere"), "nowhere")


def test_a_missing_default_bundle_says_how_to_make_it(sapwood: Sapwood, tmp_path: Path) -> None:
    away = {"XDG_CACHE_HOME": str(tmp_path)}
    refused(sapwood("generate", "--prompt", "x", environment=away), "scripts/run")


# ---- prompts and options ------------------------------------------------------------------------


def test_a_prompt_longer_than_the_context_is_refused(sapwood: Sapwood, bundle: Path) -> None:
    result = sapwood("generate", bundle, "--context-length", "64", "--prompt", "tree " * 500)
    refused(result, "64")


def test_an_empty_prompt_is_refused(sapwood: Sapwood, bundle: Path) -> None:
    refused(sapwood("generate", bundle, "--raw", "--prompt", ""), "empty")
    refused(sapwood("generate", bundle, stdin=""), "--prompt")


@pytest.mark.parametrize(
    ("options", "named"),
    [
        (("--mode", "fast"), "--mode"),
        (("--host", "cloud"), "--host"),
        (("--temperature", "-1"), "--temperature"),
        (("--temperature", "nan"), "temperature"),
        (("--temperature", "warm"), "--temperature"),
        (("--top-k", "-3"), "--top-k"),
        (("--top-p", "1.5"), "--top-p"),
        (("--min-p", "-0.5"), "--min-p"),
        (("--repetition-penalty", "0"), "--repetition-penalty"),
        (("--seed", "-1"), "--seed"),
        (("--max-new-tokens", "0"), "--max-new-tokens"),
        (("--threads", "0"), "--threads"),
        (("--context-length", "100000000"), "context"),
        (("--stop", ""), "stop"),
        (("--nonsense",), "--nonsense"),
    ],
)
def test_an_unusable_option_is_named(
    sapwood: Sapwood, bundle: Path, options: tuple[str, ...], named: str
) -> None:
    refused(generate(sapwood, bundle, *options), named)


@pytest.mark.parametrize("arguments", [("frobnicate",), ("bench", "nothing"), ("export",)])
def test_an_unusable_command_line_is_refused(sapwood: Sapwood, arguments: tuple[str, ...]) -> None:
    refused(sapwood(*arguments))


def test_an_unknown_mode_of_a_benchmark_is_named(sapwood: Sapwood, bundle: Path) -> None:
    refused(sapwood("bench", "decode", bundle, "--modes", "plain,fast"), "--modes", "fast")


# ---- a full disk, and Ctrl-C --------------------------------------------------------------------


@pytest.fixture
def small_disk(tmp_path: Path) -> Iterator[Path]:
    """A file system of one megabyte."""
    folder = tmp_path / "disk"
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(folder)]
    if shutil.which("mount") is None or subprocess.run(mount, capture_output=True).returncode != 0:
        pytest.skip("may not mount a small file system here")
    yield folder
    subprocess.run(["umount", str(folder)], check=True)


def test_a_disk_without_space_is_refused_before_anything_is_written(
    sapwood: Sapwood, small_disk: Path
) -> None:
    source = default_source()
    refused(sapwood("export", source, "--output", small_disk / "bundle"), "space")
    assert list(small_disk.iterdir()) == []


def test_a_write_that_finds_the_disk_full_leaves_nothing(
    sapwood: Sapwood, tiny_source: Path, tmp_path: Path
) -> None:
    # A limit on the size of files fails in the middle of a write, as a disk does that others fill.
    folder = tmp_path / "out"
    folder.mkdir()
    code = (
        "import resource, signal, sys; signal.signal(signal.SIGXFSZ, signal.SIG_IGN)\n"
        "resource.setrlimit(resource.RLIMIT_FSIZE, (20000, 20000))\n"
        "from sapwood.cli.main import run\n"
        f"sys.exit(run(['export', {str(tiny_source)!r}, '--output', {str(folder / 'bundle')!r}]))"
    )
    result = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True)
    refused(result, str(folder))
    assert list(folder.iterdir()) == []


@pytest.mark.parametrize(
    ("number", "status"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)], ids=["ctrl-c", "terminate"]
)
def test_an_export_that_is_interrupted_leaves_nothing(
    tmp_path: Path, number: signal.Signals, status: int
) -> None:
    folder = tmp_path / "out"
    folder.mkdir()
    process = subprocess.Popen(
        [
            *(sys.executable, "-m", "sapwood", "export", str(default_source())),
            *("--output", str(folder / "bundle")),
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    deadline = time.monotonic() + 60
    while not any(folder.glob(".*/target.weights")) and time.monotonic() < deadline:
        assert process.poll() is None, process.communicate()
        time.sleep(0.005)
    process.send_signal(number)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == status
    assert len(errors.splitlines()) <= 1
    assert "Traceback" not in errors
    assert list(folder.iterdir()) == []


def test_ctrl_c_ends_an_answer_with_status_130(smollm2: Path) -> None:
    process = subprocess.Popen(
        [
            *(sys.executable, "-m", "sapwood", "generate", str(smollm2)),
            *("--prompt", "Write a long story.", "--max-new-tokens", "1500"),
        ],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    process.stdout.read(1)
    process.send_signal(signal.SIGINT)
    _, errors = process.communicate(timeout=60)
    assert process.returncode == 130
    assert "Traceback" not in errors


def test_an_unreadable_bundle_is_refused(sapwood: Sapwood, bundle: Path) -> None:
    if os.geteuid() == 0:
        pytest.skip("root may read everything")
    (bundle / "target.weights").chmod(0)
    refused(generate(sapwood, bundle), "target.weights")
