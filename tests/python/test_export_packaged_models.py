"""The models that come as packages, exported whole: nothing is lost on the way."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tokenizers import Tokenizer

from sapwood.errors import SapwoodError
from sapwood_export.bundle import read_dequantized, read_spec, verify_bundle
from sapwood_export.command import export
from sapwood_export.packages import GEMMA3, default_source, packaged_source

gguf = pytest.importorskip("gguf")


@pytest.fixture(scope="module")
def smollm2(tmp_path_factory: pytest.TempPathFactory) -> Path:
    try:
        source = default_source()
    except SapwoodError as error:
        pytest.skip(str(error))
    return export(source, tmp_path_factory.mktemp("smollm2") / "bundle").output


def test_smollm2_is_repacked_without_a_single_rounded_weight(smollm2: Path) -> None:
    manifest = verify_bundle(smollm2)
    assert manifest["name"] == "SmolLM2-135M-Instruct"
    assert manifest["quantization"]["by_method"] == {"repacked": 211}
    assert manifest["quantization"]["source_formats"] == {"Q4_1": 210, "Q8_0": 1}
    assert manifest["tokenizer"]["bos_token_id"] is None
    assert manifest["tokenizer"]["eos_token_ids"] == [2]
    assert (smollm2 / "chat_template.jinja").is_file()


def test_smollm2s_weights_are_the_files(smollm2: Path) -> None:
    """Read with the gguf package's own reader, q and k put into rotate-half order by hand."""
    tensors = {tensor.name: tensor for tensor in gguf.GGUFReader(default_source()).tensors}

    def values(name: str) -> np.ndarray:
        return gguf.dequantize(tensors[name].data, tensors[name].tensor_type)

    spec = read_spec(smollm2)
    layer = 17
    rotated = []
    for part in "qk":
        weight = values(f"blk.{layer}.attn_{part}.weight")
        pairs = weight.reshape(-1, spec.head_dim // 2, 2, spec.hidden_size)
        rotated.append(pairs.swapaxes(1, 2).reshape(weight.shape))
    qkv = np.concatenate([*rotated, values(f"blk.{layer}.attn_v.weight")])
    assert np.array_equal(read_dequantized(smollm2, f"layers.{layer}.qkv"), qkv)
    pairs = read_dequantized(smollm2, f"layers.{layer}.gate_up").reshape(-1, 2, 16, 576)
    for half, part in enumerate(("gate", "up")):
        rows = pairs[:, half].reshape(-1, 576)
        assert np.array_equal(rows, values(f"blk.{layer}.ffn_{part}.weight"))
    down = read_dequantized(smollm2, f"layers.{layer}.down")
    assert np.array_equal(down, values(f"blk.{layer}.ffn_down.weight"))
    assert np.array_equal(read_dequantized(smollm2, "embedding"), values("token_embd.weight"))


def test_smollm2s_text_survives_its_tokenizer(smollm2: Path) -> None:
    tokenizer = Tokenizer.from_file(str(smollm2 / "tokenizer.json"))
    text = "<|im_start|>user\nWhat is 1234 + 5678? 森林 😀  \n\n<|im_end|>\n"
    ids = tokenizer.encode(text).ids
    assert ids[0] == 1
    assert tokenizer.decode(ids, skip_special_tokens=False) == text
    digits = tokenizer.encode("1234").tokens
    assert digits == ["1", "2", "3", "4"]  # SmolLM2 takes digits one by one


def test_gemma3_keeps_every_code_that_its_formats_share(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    try:
        packaged_source(f"package:{GEMMA3}")
    except SapwoodError as error:
        pytest.skip(str(error))
    bundle = export(f"package:{GEMMA3}", tmp_path / "bundle").output
    manifest = verify_bundle(bundle)
    methods = {"repacked": 91, "codes-repacked": 27, "round-to-nearest": 9}
    assert manifest["quantization"]["by_method"] == methods
    assert manifest["tokenizer"]["bos_token_id"] == 2
    assert manifest["tokenizer"]["eos_token_ids"] == [1, 106]  # <eos>, <end_of_turn>
    spec = read_spec(bundle)
    assert [layer for layer in range(18) if not spec.layer_is_sliding[layer]] == [5, 11, 17]
    tokenizer = Tokenizer.from_file(str(bundle / "tokenizer.json"))
    # The published tokenizer's ids.
    assert tokenizer.encode("Hello world").ids == [2, 9259, 1902]
    assert tokenizer.encode("a     b", add_special_tokens=False).tokens == ["a", "▁▁▁▁▁", "b"]
