"""Every family through its bundle: packed, read back, and run by torch, ONNX Runtime and native."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("transformers")
pytest.importorskip("onnxruntime")

from graph_tools import SLOTS, read_and_branch, tiny_bundle  # noqa: E402
from sapwood_export.models.session import DecoderSession, Logits  # noqa: E402
from sapwood_export.models.weights import weights_from_bundle  # noqa: E402
from sapwood_export.onnx.compare import divergences  # noqa: E402
from sapwood_export.operators.session import OperatorSession  # noqa: E402
from tiny_transformers import FAMILIES, load_bundle_numbers, tiny_model  # noqa: E402


def torch_logits(bundle: Path) -> Logits:
    spec, weights = weights_from_bundle(bundle)
    return read_and_branch(DecoderSession(spec, weights, SLOTS), spec.vocabulary_size)


@pytest.mark.parametrize("family", FAMILIES)
def test_a_bundles_numbers_give_the_logits_of_transformers(family: str) -> None:
    spec, weights = weights_from_bundle(tiny_bundle(family))
    theirs: Any = tiny_model(family)
    load_bundle_numbers(theirs, weights, family)
    tokens = np.random.default_rng(9).integers(0, spec.vocabulary_size, 40).tolist()
    session = DecoderSession(spec, weights, SLOTS)
    ours = np.concatenate([session.extend(tokens[:30]), session.extend(tokens[30:])])
    with torch.no_grad():
        expected = theirs(torch.tensor([tokens])).logits[0].numpy()
    assert np.abs(expected).max() > 0.5
    assert np.abs(ours - expected).max() < 1e-4


@pytest.mark.parametrize("family", FAMILIES)
def test_eight_bit_activations_stay_near_the_dequantised_model(family: str) -> None:
    bundle = tiny_bundle(family)
    expected = torch_logits(bundle)
    actual = read_and_branch(OperatorSession(bundle, SLOTS), expected.shape[1])
    assert 0 < divergences(expected, actual).mean() < 0.01


@pytest.mark.parametrize("family", FAMILIES)
def test_the_native_host_computes_what_the_torch_operators_say(family: str) -> None:
    runtime = pytest.importorskip("sapwood._runtime", reason="sapwood is not built")
    from runtime_session import RuntimeSession

    bundle = tiny_bundle(family)
    model = runtime.open_native_model(str(bundle), threads=2)
    native = read_and_branch(RuntimeSession(model, SLOTS), model.spec.vocabulary_size)
    expected = read_and_branch(OperatorSession(bundle, SLOTS), model.spec.vocabulary_size)
    assert divergences(expected, native).mean() < 1e-4
