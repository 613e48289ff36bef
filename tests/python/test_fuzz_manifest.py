"""Bundles whose manifest says anything whatever: one clear line and nothing worse.

The C++ reader has its own fuzz target, tests/fuzz/bundle_fuzz.cc.
"""

from __future__ import annotations

import json
import random
from pathlib import Path

import pytest

from fuzz_json import change_json
from fuzz_tools import change_bytes, refuse_or_read
from sapwood_export.bundle import read_manifest, read_spec, verify_bundle
from sapwood_export.command import export
from tiny_models import tiny_config, tiny_weights, write_folder

MUTANTS = 400


@pytest.fixture
def bundle(tmp_path: Path) -> Path:
    config = tiny_config("gemma3", num_hidden_layers=2)
    export(write_folder(tmp_path / "model", config, tiny_weights(config)), tmp_path / "bundle")
    return tmp_path / "bundle"


def test_a_manifest_of_any_values_is_refused_or_verified(bundle: Path) -> None:
    file = bundle / "manifest.json"
    manifest = json.loads(file.read_text())
    generator = random.Random(5)
    results = []
    for number in range(MUTANTS):
        changed = change_json(manifest, generator)
        file.write_text(json.dumps(changed), errors="surrogatepass")
        results.append(refuse_or_read(lambda: verify_bundle(bundle), f"mutant {number}"))
        refuse_or_read(lambda: read_spec(bundle), f"spec of mutant {number}")
    assert results.count(False) > MUTANTS // 4


def test_a_manifest_with_changed_bytes_is_refused_or_read(bundle: Path) -> None:
    file = bundle / "manifest.json"
    original = file.read_bytes()
    generator = random.Random(6)
    for number in range(MUTANTS):
        file.write_bytes(change_bytes(original, generator))
        refuse_or_read(lambda: read_manifest(bundle), f"mutant {number}")
