"""GGUF files with damaged headers: one clear line, no traceback, hang or huge allocation."""

from __future__ import annotations

import random
from pathlib import Path

import pytest

from fuzz_tools import change_bytes, refuse_or_read
from sapwood_export.bundle import verify_bundle
from sapwood_export.command import export
from sapwood_export.sources.gguf_header import GgufFile
from tiny_models import tiny_config, tiny_weights, write_gguf

MUTANTS = 250
EXPORTED = 20  # of those that still open, so many are exported whole


@pytest.fixture(params=["llama", "gemma3"])
def gguf(request: pytest.FixtureRequest, tmp_path: Path) -> Path:
    config = tiny_config(request.param, num_hidden_layers=1)
    weights = tiny_weights(config)
    return write_gguf(tmp_path / "tiny.gguf", config, weights, format_of=lambda name: "Q4_1")


def test_a_damaged_gguf_is_refused_in_one_line_or_exports_to_a_sound_bundle(
    gguf: Path, tmp_path: Path
) -> None:
    original = gguf.read_bytes()
    first_tensor = min(tensor.offset for tensor in GgufFile(gguf).tensors.values())
    output = tmp_path / "bundle"
    damaged = tmp_path / "damaged.gguf"
    generator = random.Random(1)
    opened = refused = exported = 0
    for number in range(MUTANTS):
        damaged.write_bytes(change_bytes(original, generator, first_tensor))
        if not refuse_or_read(lambda: GgufFile(damaged), f"header of mutant {number}"):
            refused += 1
            continue
        opened += 1
        if exported == EXPORTED:
            continue
        exported += 1
        accepted = refuse_or_read(
            lambda: export(damaged, output, force=True), f"export of mutant {number}"
        )
        if accepted:
            verify_bundle(output)
        assert sorted(path.name for path in tmp_path.iterdir() if path.name.startswith(".")) == []
    # Both outcomes must be met often, or the changes are of the wrong kind.
    assert opened > MUTANTS // 20
    assert refused > MUTANTS // 4


def test_a_gguf_cut_off_anywhere_in_its_header_is_refused(gguf: Path, tmp_path: Path) -> None:
    original = gguf.read_bytes()
    first_tensor = min(tensor.offset for tensor in GgufFile(gguf).tensors.values())
    cut = tmp_path / "cut.gguf"
    for length in [0, 1, 3, 4, 8, 16, 23, 24, 25, *range(26, first_tensor, first_tensor // 97)]:
        cut.write_bytes(original[:length])
        assert not refuse_or_read(lambda: GgufFile(cut), f"the first {length} bytes")


def test_counts_and_lengths_beyond_the_file_are_refused_at_once(gguf: Path, tmp_path: Path) -> None:
    original = gguf.read_bytes()
    damaged = tmp_path / "damaged.gguf"
    for at in (8, 16, 24):  # the number of tensors, of keys, the length of the first key
        for value in (2**31, 2**40, 2**63 - 1, 2**63, 2**64 - 1):
            damaged.write_bytes(original[:at] + value.to_bytes(8, "little") + original[at + 8 :])
            assert not refuse_or_read(lambda: GgufFile(damaged), f"{value} at byte {at}")
