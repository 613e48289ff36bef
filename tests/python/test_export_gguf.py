"""GGUF files: exact repacking through the fused tensors, llama's row order, shards, bad files."""

from __future__ import annotations

import struct
from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sapwood.errors import SapwoodError
from sapwood_export.bundle import load_bundle_weights, read_manifest
from sapwood_export.command import export
from sapwood_export.sources import open_source
from sapwood_export.sources.gguf_header import GgufFile
from sapwood_export.sources.gguf_source import open_gguf
from tiny_models import FAMILIES, tiny_config, tiny_weights, write_folder, write_gguf

gguf = pytest.importorskip("gguf")


def refusal(path: Path) -> str:
    """The one line with which the file is refused; nothing may be left behind."""
    output = path.parent / "refused"
    with pytest.raises(SapwoodError) as caught:
        export(path, output)
    message = str(caught.value)
    assert "\n" not in message
    assert not output.exists()
    assert not list(path.parent.glob(".refused*"))
    return message


def tiny_file(path: Path, family: str = "llama", **arguments: Any) -> Path:
    config = tiny_config(family)
    return write_gguf(path, config, tiny_weights(config), **arguments)


@pytest.mark.parametrize("family", FAMILIES)
def test_a_gguf_file_gives_what_the_hugging_face_folder_gives(tmp_path: Path, family: str) -> None:
    config = tiny_config(family)
    weights = tiny_weights(config)
    export(write_folder(tmp_path / "hf", config, weights), tmp_path / "a")
    export(write_gguf(tmp_path / "m.gguf", config, weights), tmp_path / "b")
    first, second = read_manifest(tmp_path / "a"), read_manifest(tmp_path / "b")
    assert first["target"] == second["target"]
    assert (tmp_path / "a/target.weights").read_bytes() == (
        tmp_path / "b/target.weights"
    ).read_bytes()


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize(
    ("block_format", "bundle_format"),
    [("Q4_0", "int4_g32"), ("Q4_1", "int4_g32_min"), ("Q8_0", "int8_g32"), ("Q5_0", "int8_g32")],
)
def test_fused_tensors_hold_exactly_the_files_values(
    tmp_path: Path, family: str, block_format: str, bundle_format: str
) -> None:
    config = tiny_config(family)
    weights = tiny_weights(config)
    kind = gguf.GGMLQuantizationType[block_format]
    path = write_gguf(
        tmp_path / "m.gguf",
        config,
        weights,
        format_of=lambda name: "Q8_0" if name == "token_embd.weight" else block_format,
    )
    manifest = export(path, tmp_path / "bundle").manifest
    assert manifest["quantization"]["method"] == "repacked"
    assert manifest["quantization"]["mixed"] == {}

    # Quantising commutes with permuting rows, so the reference needs no knowledge of the file.
    def exact(name: str) -> np.ndarray:
        return gguf.dequantize(gguf.quantize(weights[name], kind), kind)

    actual = load_bundle_weights(tmp_path / "bundle")
    for layer in range(config["num_hidden_layers"]):
        hf, ours = f"model.layers.{layer}.", f"layers.{layer}."
        qkv = [exact(f"{hf}self_attn.{part}_proj.weight") for part in "qkv"]
        assert np.array_equal(actual[ours + "qkv"], np.concatenate(qkv))
        assert np.array_equal(actual[ours + "output"], exact(hf + "self_attn.o_proj.weight"))
        assert np.array_equal(actual[ours + "down"], exact(hf + "mlp.down_proj.weight"))
        pairs = actual[ours + "gate_up"].reshape(-1, 2, 16, config["hidden_size"])
        for half, part in enumerate(("gate", "up")):
            rows = pairs[:, half].reshape(-1, config["hidden_size"])
            assert np.array_equal(rows, exact(f"{hf}mlp.{part}_proj.weight"))
        for part in ("qkv", "output", "gate_up", "down"):
            assert manifest["target"]["tensors"][ours + part]["format"] == bundle_format


def test_parts_of_different_formats_share_the_widest_and_the_manifest_says_so(
    tmp_path: Path,
) -> None:
    formats = {"attn_v": "Q8_0", "ffn_up": "Q4_1", "attn_q": "Q4_0", "attn_k": "Q4_0"}

    def format_of(name: str) -> str:
        return next((form for part, form in formats.items() if part in name), "Q4_0")

    config = tiny_config("llama")
    weights = tiny_weights(config)
    path = write_gguf(tmp_path / "m.gguf", config, weights, format_of=format_of)
    manifest = export(path, tmp_path / "bundle").manifest
    tensors, mixed = manifest["target"]["tensors"], manifest["quantization"]["mixed"]
    assert tensors["layers.0.qkv"]["format"] == "int8_g32"
    assert tensors["layers.0.gate_up"]["format"] == "int4_g32_min"
    assert tensors["layers.0.down"]["format"] == "int4_g32"
    assert mixed["layers.0.qkv"]["blk.0.attn_v.weight"] == {"format": "Q8_0", "method": "repacked"}
    assert mixed["layers.0.gate_up"] == {
        "blk.0.ffn_gate.weight": {"format": "Q4_0", "method": "round-to-nearest"},
        "blk.0.ffn_up.weight": {"format": "Q4_1", "method": "repacked"},
    }
    assert manifest["quantization"]["method"] == "repacked+round-to-nearest"
    # int8 holds Q4_0 and Q8_0 alike, so even the mixed tensor is exact.
    q8 = gguf.GGMLQuantizationType.Q8_0
    v = gguf.dequantize(gguf.quantize(weights["model.layers.0.self_attn.v_proj.weight"], q8), q8)
    actual = load_bundle_weights(tmp_path / "bundle")
    assert np.array_equal(actual["layers.0.qkv"][-len(v) :], v)


@pytest.mark.parametrize("plain", ["F16", "BF16"])
def test_plain_numbers_are_widened_exactly(tmp_path: Path, plain: str) -> None:
    path = tiny_file(tmp_path / "m.gguf", format_of=lambda name: plain)
    kind = gguf.GGMLQuantizationType[plain]
    weight = tiny_weights(tiny_config("llama"))["model.layers.0.mlp.down_proj.weight"]
    expected = gguf.dequantize(gguf.quantize(weight, kind), kind)
    tensor = open_gguf(path).tensors["layers.0.down"]
    assert np.array_equal(tensor.read(), expected)
    assert tensor.read_blocks() is None


def test_other_block_formats_are_dequantised_and_rounded(tmp_path: Path) -> None:
    path = tiny_file(tmp_path / "m.gguf", format_of=lambda name: "Q5_1")
    manifest = export(path, tmp_path / "bundle").manifest
    assert manifest["quantization"]["method"] == "round-to-nearest"
    assert manifest["quantization"]["source_formats"] == {"Q5_1": 15}


def test_a_format_that_is_asked_for_is_used_for_every_layer(tmp_path: Path) -> None:
    path = tiny_file(tmp_path / "m.gguf", format_of=lambda name: "Q4_1")
    manifest = export(path, tmp_path / "bundle", quantization="int8_g32").manifest
    assert manifest["quantization"]["by_format"]["int8_g32"] == 9


def test_groups_that_do_not_divide_the_inputs_are_refused(tmp_path: Path) -> None:
    path = tiny_file(tmp_path / "m.gguf")
    with pytest.raises(SapwoodError, match=r"64 inputs, not a multiple of the group of 128"):
        export(path, tmp_path / "bundle", quantization="int4_g128")


def test_rope_factors_become_part_of_the_frequencies(tmp_path: Path) -> None:
    factors = np.linspace(1, 8, 8).astype(np.float32)
    path = tiny_file(tmp_path / "m.gguf", extra={"rope_freqs.weight": factors})
    source = open_gguf(path)
    plain = 10000.0 ** -(np.arange(0, 16, 2) / 16)
    assert np.allclose(source.rope_global.inverse_frequencies(16), plain / factors, rtol=1e-6)


def test_linear_rope_scaling_is_read(tmp_path: Path) -> None:
    metadata = {"rope.scaling.type": "linear", "rope.scaling.factor": 4.0}
    source = open_gguf(tiny_file(tmp_path / "m.gguf", "qwen3", metadata=metadata))
    plain = 10000.0 ** -(np.arange(0, 32, 2) / 32)
    assert np.allclose(source.rope_global.inverse_frequencies(32), plain / 4, rtol=1e-6)


def test_gemmas_local_layers_rotate_faster(tmp_path: Path) -> None:
    source = open_gguf(tiny_file(tmp_path / "m.gguf", "gemma3"))
    assert source.spec.layer_is_sliding == (True,) * 5 + (False, True)
    assert source.rope_local is not None
    assert (source.rope_global.base, source.rope_local.base) == (1e6, 1e4)


@pytest.mark.parametrize("shard", [1, 2, 3])
def test_any_shard_opens_the_whole_model(tmp_path: Path, shard: int) -> None:
    tiny_file(tmp_path / "one.gguf")
    tiny_file(tmp_path / "m.gguf", shards=3)
    export(tmp_path / "one.gguf", tmp_path / "a")
    report = export(tmp_path / f"m-{shard:05d}-of-00003.gguf", tmp_path / "b")
    first, second = ((tmp_path / name / "target.weights").read_bytes() for name in "ab")
    assert first == second
    assert report.manifest["name"] == "m"


def test_a_missing_gguf_shard_is_named(tmp_path: Path) -> None:
    path = tiny_file(tmp_path / "m.gguf", shards=3)
    (tmp_path / "m-00002-of-00003.gguf").unlink()
    assert "m-00002-of-00003.gguf: this shard is missing, the model has 3" in refusal(path)


def test_a_stray_gguf_shard_is_named(tmp_path: Path) -> None:
    path = tiny_file(tmp_path / "m.gguf", shards=3)
    (tmp_path / "m-00001-of-00002.gguf").write_bytes(path.read_bytes())
    assert "m-00001-of-00002.gguf: a stray shard beside a model of 3 shards" in refusal(path)


def test_shards_that_changed_places_are_refused(tmp_path: Path) -> None:
    path = tiny_file(tmp_path / "m.gguf", shards=3)
    second, third = tmp_path / "m-00002-of-00003.gguf", tmp_path / "m-00003-of-00003.gguf"
    second.rename(tmp_path / "x")
    third.rename(second)
    (tmp_path / "x").rename(third)
    assert "shard 3 by its own account, 2 by its name" in refusal(path)


def test_a_shard_under_a_single_files_name_is_refused(tmp_path: Path) -> None:
    path = tiny_file(tmp_path / "m.gguf", shards=3)
    path.rename(tmp_path / "whole.gguf")
    assert "one of 3 shards by its own account, 1 by its name" in refusal(tmp_path / "whole.gguf")


def test_a_folder_with_one_gguf_is_that_model(tmp_path: Path) -> None:
    folder = tmp_path / "folder"
    folder.mkdir()
    tiny_file(folder / "m.gguf", shards=2)
    assert open_source(folder).name == "m"
    tiny_file(folder / "other.gguf")
    with pytest.raises(SapwoodError, match=r"several models .*m-00001-of-00002\.gguf, other\.gguf"):
        open_source(folder)


def without(path: Path, name: str) -> Path:
    config = tiny_config("llama")
    weights = {key: value for key, value in tiny_weights(config).items() if key != name}
    return write_gguf(path, config, weights)


def test_a_missing_tensor_is_named_as_the_file_would(tmp_path: Path) -> None:
    path = without(tmp_path / "m.gguf", "model.layers.1.mlp.down_proj.weight")
    assert "tensor 'blk.1.ffn_down.weight' is missing" in refusal(path)


def test_an_unexpected_tensor_is_named(tmp_path: Path) -> None:
    extra = {"blk.0.ffn_gate_inp.weight": np.zeros((4, 64), dtype=np.float32)}
    path = tiny_file(tmp_path / "m.gguf", extra=extra)
    assert "unexpected tensor 'blk.0.ffn_gate_inp.weight'" in refusal(path)


@pytest.mark.parametrize(
    ("family", "metadata", "words"),
    [
        ("llama", {"block_count": None}, "the key 'llama.block_count' is missing"),
        ("llama", {"block_count": 1}, "unexpected tensor 'blk.1."),
        ("llama", {"block_count": 3}, "tensor 'blk.2."),
        ("llama", {"block_count": 2**32 - 1}, "4294967295 layers; 1 to 4096 are possible"),
        ("llama", {"attention.head_count": 0}, "'llama.attention.head_count' is 0, must be"),
        ("llama", {"attention.head_count": 128}, "'llama.attention.key_length' is 0, must be"),
        ("llama", {"rope.freq_base": 0.0}, "a rope base of 0.0"),
        ("llama", {"rope.freq_base": float("nan")}, "is nan, not finite"),
        ("llama", {"embedding_length": 128}, "'token_embd.weight' has shape [512, 64]"),
        ("llama", {"rope.scaling.type": "yarn"}, "rope scaling 'yarn' is not supported"),
        ("llama", {"rope.dimension_count": 8}, "rotation of a part of each head"),
        ("llama", {"attention.value_length": 8}, "keys and values of different length"),
        ("llama", {"attention.head_count_kv": [2, 1]}, "differs from layer to layer"),
        ("llama", {"expert_count": 8}, "mixture of experts"),
        ("llama", {"context_length": "long"}, "'llama.context_length' is not a number"),
        ("gemma3", {"final_logit_softcapping": 30.0}, "final_logit_softcapping is set"),
    ],
)
def test_metadata_that_cannot_be_is_named(
    tmp_path: Path, family: str, metadata: dict[str, Any], words: str
) -> None:
    assert words in refusal(tiny_file(tmp_path / "m.gguf", family, metadata=metadata))


def test_an_unknown_family_is_named(tmp_path: Path) -> None:
    writer = gguf.GGUFWriter(tmp_path / "m.gguf", "mamba")
    writer.add_block_count(1)
    writer.add_tensor("token_embd.weight", np.zeros((4, 32), dtype=np.float32))
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    assert "unknown family 'mamba'; known are llama" in refusal(tmp_path / "m.gguf")


def test_a_file_without_a_tokenizer_is_refused(tmp_path: Path) -> None:
    path = tiny_file(tmp_path / "m.gguf", tokenizer=False)
    assert "the tokenizer is missing: no 'tokenizer.ggml.model'" in refusal(path)


@pytest.mark.parametrize("content", [b"", b"GG", b"PK\x03\x04" + bytes(100), b"GGUG" + bytes(100)])
def test_a_wrong_magic_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "m.gguf"
    path.write_bytes(content)
    assert "not a GGUF file: it does not begin with 'GGUF'" in refusal(path)


@pytest.mark.parametrize(
    ("offset", "value", "words"),
    [
        (4, struct.pack("<I", 1), "GGUF version 1, known are 2 and 3"),
        (4, struct.pack(">I", 3), "a big-endian GGUF file"),
        (8, struct.pack("<Q", 2**60), "claims 1152921504606846976 tensors"),
        (16, struct.pack("<Q", 2**60), "claims 1152921504606846976 keys"),
        (24, struct.pack("<Q", 2**63), "truncated in the header"),
    ],
)
def test_a_damaged_header_is_refused(tmp_path: Path, offset: int, value: bytes, words: str) -> None:
    path = tiny_file(tmp_path / "m.gguf")
    data = bytearray(path.read_bytes())
    data[offset : offset + len(value)] = value
    path.write_bytes(data)
    assert words in refusal(path)


def test_a_truncated_file_is_refused_wherever_it_ends(tmp_path: Path) -> None:
    data = tiny_file(tmp_path / "m.gguf").read_bytes()
    cut = tmp_path / "cut.gguf"
    for size in [4, 20, 30, 200, 5000, len(data) // 2, len(data) - 1]:
        cut.write_bytes(data[:size])
        assert "truncated" in refusal(cut), size


def test_a_tensor_out_of_bounds_is_named(tmp_path: Path) -> None:
    path = tiny_file(tmp_path / "m.gguf")
    info = next(iter(GgufFile(path).tensors.values()))
    data = bytearray(path.read_bytes())
    # A tensor's record: name, dimensions, shape, type, and last its offset.
    record = data.index(info.name.encode()) + len(info.name) + 4 + 8 * len(info.shape) + 4
    data[record : record + 8] = struct.pack("<Q", 1 << 40)
    path.write_bytes(data)
    assert f"tensor '{info.name}' ends at byte" in refusal(path)
    data[record : record + 8] = struct.pack("<Q", 3)
    path.write_bytes(data)
    assert f"tensor '{info.name}' lies at the unaligned offset 3" in refusal(path)
