"""Safetensors files and configs with damaged headers: one clear line and nothing worse."""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from fuzz_json import change_json
from fuzz_tools import change_bytes, refuse_or_read
from sapwood_export.bundle import verify_bundle
from sapwood_export.command import export
from sapwood_export.sources import open_source
from sapwood_export.sources.safetensors_file import SafetensorsFile
from tiny_models import tiny_config, tiny_weights, write_folder

MUTANTS = 200


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    config = tiny_config("qwen2", num_hidden_layers=1)
    return write_folder(tmp_path / "model", config, tiny_weights(config))


def header_of(data: bytes) -> tuple[dict[str, object], bytes]:
    """The header as an object, and everything behind it."""
    length = int.from_bytes(data[:8], "little")
    return json.loads(data[8 : 8 + length]), data[8 + length :]


def with_header(header: object, rest: bytes) -> bytes:
    raw = json.dumps(header).encode("utf-8", "surrogatepass")
    return len(raw).to_bytes(8, "little") + raw + rest


def test_a_safetensors_file_with_changed_bytes_in_its_header_is_refused_or_read(
    folder: Path,
) -> None:
    file = folder / "model.safetensors"
    original = file.read_bytes()
    end = 8 + int.from_bytes(original[:8], "little")
    generator = random.Random(2)
    results = []
    for number in range(MUTANTS):
        file.write_bytes(change_bytes(original, generator, end))
        results.append(refuse_or_read(lambda: SafetensorsFile(file), f"mutant {number}"))
    assert results.count(False) > MUTANTS // 2


def test_a_model_whose_safetensors_header_lies_is_refused_or_exports_to_a_sound_bundle(
    folder: Path, tmp_path: Path
) -> None:
    file = folder / "model.safetensors"
    header, rest = header_of(file.read_bytes())
    output = tmp_path / "bundle"
    generator = random.Random(3)
    for number in range(MUTANTS):
        file.write_bytes(with_header(change_json(header, generator), rest))
        if refuse_or_read(lambda: open_source(folder), f"mutant {number}") and refuse_or_read(
            lambda: export(folder, output, force=True), f"export of mutant {number}"
        ):
            verify_bundle(output)


def test_a_config_of_any_values_is_refused_or_exports_to_a_sound_bundle(
    folder: Path, tmp_path: Path
) -> None:
    file = folder / "config.json"
    config = json.loads(file.read_text())
    output = tmp_path / "bundle"
    generator = random.Random(4)
    refused = 0
    for number in range(MUTANTS):
        file.write_text(json.dumps(change_json(config, generator)))
        if refuse_or_read(lambda: export(folder, output, force=True), f"config mutant {number}"):
            verify_bundle(output)
        else:
            refused += 1
    assert refused > MUTANTS // 4
