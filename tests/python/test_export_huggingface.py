"""Hugging Face folders: what is read, in which order it is fused, and what is refused by name."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from safetensors.numpy import save_file

from sapwood.errors import SapwoodError
from sapwood_export.bundle import load_bundle_weights, read_manifest, read_spec, verify_bundle
from sapwood_export.command import export
from sapwood_export.sources import open_source
from sapwood_export.sources.safetensors_file import SafetensorsFile
from tiny_models import FAMILIES, Weights, tiny_config, tiny_weights, write_folder


def refusal(folder: Path) -> str:
    """The one line with which the folder is refused; nothing may be left behind."""
    output = folder.parent / "refused"
    with pytest.raises(SapwoodError) as caught:
        export(folder, output)
    message = str(caught.value)
    assert "\n" not in message
    assert not output.exists()
    assert not list(folder.parent.glob(".refused*"))
    return message


def relative_error(actual: np.ndarray, expected: np.ndarray) -> float:
    return float(np.linalg.norm(actual - expected) / np.linalg.norm(expected))


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("tied", [True, False])
def test_every_family_is_exported_and_fused_in_the_contracts_order(
    tmp_path: Path, family: str, tied: bool
) -> None:
    config = tiny_config(family, tie_word_embeddings=tied)
    weights = tiny_weights(config)
    export(write_folder(tmp_path / "model", config, weights), tmp_path / "bundle")
    manifest = verify_bundle(tmp_path / "bundle")
    spec = read_spec(tmp_path / "bundle")
    assert spec.tied_head is tied
    actual = load_bundle_weights(tmp_path / "bundle")
    expected = fused(config, weights)
    assert actual.keys() == expected.keys()
    for name, value in expected.items():
        assert actual[name].shape == value.shape, name
        form = manifest["target"]["tensors"][name]["format"]
        limit = {"float32": 1e-6, "int8_g32": 0.01, "int4_g32_min": 0.1}[form]
        assert relative_error(actual[name], value) < limit, name
    assert manifest["target"]["tensors"]["embedding"]["format"] == "int8_g32"


def fused(config: dict[str, Any], weights: Weights) -> Weights:
    """What the bundle's tensors are, written down from the contract."""
    gemma = config["model_type"] == "gemma3_text"
    one = np.float32(1) if gemma else np.float32(0)
    result: Weights = {
        "embedding": weights["model.embed_tokens.weight"],
        "final_norm": weights["model.norm.weight"] + one,
    }
    if "lm_head.weight" in weights:
        result["head"] = weights["lm_head.weight"]
    head_dim = config.get("head_dim", config["hidden_size"] // config["num_attention_heads"])
    exponents = np.arange(0, head_dim, 2) / head_dim
    result["rope.global"] = (config["rope_theta"] ** -exponents).astype(np.float32)
    if gemma:
        result["rope.local"] = (config["rope_local_base_freq"] ** -exponents).astype(np.float32)
    for layer in range(config["num_hidden_layers"]):

        def get(name: str, layer: int = layer) -> np.ndarray:
            return weights[f"model.layers.{layer}.{name}"]

        start = f"layers.{layer}."
        projections = [get(f"self_attn.{part}_proj.weight") for part in "qkv"]
        result[start + "qkv"] = np.concatenate(projections)
        if config["model_type"] == "qwen2":
            biases = [get(f"self_attn.{part}_proj.bias") for part in "qkv"]
            result[start + "qkv_bias"] = np.concatenate(biases)
        if config["model_type"] in ("qwen3", "gemma3_text"):
            result[start + "q_norm"] = get("self_attn.q_norm.weight") + one
            result[start + "k_norm"] = get("self_attn.k_norm.weight") + one
        result[start + "output"] = get("self_attn.o_proj.weight")
        gate, up = get("mlp.gate_proj.weight"), get("mlp.up_proj.weight")
        pairs = zip(np.split(gate, len(gate) // 16), np.split(up, len(up) // 16), strict=True)
        result[start + "gate_up"] = np.concatenate([half for pair in pairs for half in pair])
        result[start + "down"] = get("mlp.down_proj.weight")
        result[start + "attention_norm"] = get("input_layernorm.weight") + one
        if gemma:
            result[start + "attention_post_norm"] = get("post_attention_layernorm.weight") + one
            result[start + "mlp_norm"] = get("pre_feedforward_layernorm.weight") + one
            result[start + "mlp_post_norm"] = get("post_feedforward_layernorm.weight") + one
        else:
            result[start + "mlp_norm"] = get("post_attention_layernorm.weight")
    return result


def test_shards_give_the_same_weights_file_as_one_file(tmp_path: Path) -> None:
    config = tiny_config("llama")
    weights = tiny_weights(config)
    export(write_folder(tmp_path / "one", config, weights), tmp_path / "a")
    export(write_folder(tmp_path / "three", config, weights, shards=3), tmp_path / "b")
    first, second = ((tmp_path / name / "target.weights").read_bytes() for name in "ab")
    assert first == second


def test_two_exports_are_the_same_bytes(tmp_path: Path) -> None:
    config = tiny_config("qwen3")
    folder = write_folder(tmp_path / "model", config, tiny_weights(config))
    for name in "ab":
        export(folder, tmp_path / name)
    for path in (tmp_path / "a").iterdir():
        assert path.read_bytes() == (tmp_path / "b" / path.name).read_bytes()


@pytest.mark.parametrize("kind", ["float16", "bfloat16", "float64"])
def test_number_formats_are_widened_exactly(tmp_path: Path, kind: str) -> None:
    generator = np.random.default_rng(4)
    values = generator.standard_normal((8, 64)).astype(np.float32)
    if kind == "bfloat16":
        values = (values.view(np.uint32) & np.uint32(0xFFFF0000)).view(np.float32)
        raw = (values.view(np.uint32) >> np.uint32(16)).astype("<u2").tobytes()
        header = {"w": {"dtype": "BF16", "shape": [8, 64], "data_offsets": [0, len(raw)]}}
        # An odd header length: the data then lies at an odd address.
        text = json.dumps(header).encode()
        text += b" " * (1 - len(text) % 2)
        (tmp_path / "m.safetensors").write_bytes(len(text).to_bytes(8, "little") + text + raw)
    else:
        values = values.astype(kind).astype(np.float32)
        save_file({"w": values.astype(kind)}, tmp_path / "m.safetensors")
    tensor = SafetensorsFile(tmp_path / "m.safetensors").tensors["w"]
    assert np.array_equal(tensor.read(), values)
    rows = np.array([5, 0, 5])
    assert np.array_equal(tensor.read(rows), values[rows])


def test_gemmas_other_towers_are_left_out_and_said_to_be(tmp_path: Path) -> None:
    text = tiny_config("gemma3")
    config = {"model_type": "gemma3", "text_config": text}
    weights = tiny_weights(text)
    for part in ("embeddings.weight", "head.bias"):
        weights[f"vision_tower.{part}"] = np.zeros((4, 4), dtype=np.float32)

    def rename(name: str) -> str:
        return (
            name
            if name.startswith("vision")
            else "language_" + name.replace("model.", "model.model.", 1)
        )

    folder = write_folder(tmp_path / "model", config, weights, rename=rename)
    report = export(folder, tmp_path / "bundle")
    assert report.notes == ("left out 2 tensors of vision_tower, which is for pictures",)
    expected = fused(text, weights)
    actual = load_bundle_weights(tmp_path / "bundle")
    assert np.allclose(actual["final_norm"], expected["final_norm"])
    assert relative_error(actual["embedding"], expected["embedding"]) < 0.01


@pytest.fixture
def model(tmp_path: Path) -> Path:
    config = tiny_config("llama")
    return write_folder(tmp_path / "model", config, tiny_weights(config), shards=3)


def rewrite_config(folder: Path, **changes: Any) -> None:
    config = json.loads((folder / "config.json").read_text())
    (folder / "config.json").write_text(json.dumps({**config, **changes}))


def test_a_missing_shard_is_named(model: Path) -> None:
    (model / "model-00002-of-00003.safetensors").unlink()
    message = refusal(model)
    assert "model-00002-of-00003.safetensors: this shard is missing" in message
    assert "holds 7 tensors" in message


def test_a_stray_shard_is_named(model: Path) -> None:
    (model / "model-00004-of-00003.safetensors").write_bytes(
        (model / "model-00003-of-00003.safetensors").read_bytes()
    )
    assert "model-00004-of-00003.safetensors: a stray shard" in refusal(model)


def test_a_single_file_beside_an_index_is_a_stray_one(model: Path) -> None:
    save_file({"x": np.zeros(1, dtype=np.float32)}, model / "model.safetensors")
    assert "/model.safetensors: a stray shard" in refusal(model)


def test_a_tensor_that_the_index_does_not_list_is_named(model: Path) -> None:
    path = model / "model.safetensors.index.json"
    index = json.loads(path.read_text())
    del index["weight_map"]["model.norm.weight"]
    path.write_text(json.dumps(index))
    assert "a stray tensor 'model.norm.weight'" in refusal(model)


def test_a_tensor_that_only_the_index_knows_is_named(model: Path) -> None:
    path = model / "model.safetensors.index.json"
    index = json.loads(path.read_text())
    index["weight_map"]["model.extra"] = "model-00001-of-00003.safetensors"
    path.write_text(json.dumps(index))
    assert "tensor 'model.extra' is missing" in refusal(model)


def test_an_index_that_points_out_of_the_folder_is_refused(model: Path) -> None:
    path = model / "model.safetensors.index.json"
    index = json.loads(path.read_text())
    index["weight_map"]["model.norm.weight"] = "../../secret.safetensors"
    path.write_text(json.dumps(index))
    assert "is said to be in '../../secret.safetensors'" in refusal(model)


def test_weights_without_an_index_are_not_guessed_at(tmp_path: Path, model: Path) -> None:
    (model / "model.safetensors.index.json").unlink()
    assert "neither model.safetensors nor model.safetensors.index.json" in refusal(model)
    for path in model.glob("*.safetensors"):
        path.unlink()
    assert "no model.safetensors and no" in refusal(model)


@pytest.mark.parametrize(
    "name",
    [
        "model.norm.weight",
        "model.embed_tokens.weight",
        "model.layers.1.mlp.up_proj.weight",
    ],
)
def test_a_missing_tensor_is_named(tmp_path: Path, name: str) -> None:
    config = tiny_config("llama")
    weights = tiny_weights(config)
    del weights[name]
    folder = write_folder(tmp_path / "model", config, weights)
    assert f"tensor '{name}' is missing" in refusal(folder)


def test_an_unexpected_tensor_is_named(tmp_path: Path) -> None:
    config = tiny_config("llama")
    weights = tiny_weights(config)
    weights["model.layers.0.self_attn.q_proj.bias"] = np.zeros(64, dtype=np.float32)
    folder = write_folder(tmp_path / "model", config, weights)
    assert "unexpected tensor 'model.layers.0.self_attn.q_proj.bias'" in refusal(folder)


def test_a_layer_too_many_is_named(tmp_path: Path) -> None:
    config = tiny_config("llama")
    folder = write_folder(tmp_path / "model", config, tiny_weights(config))
    rewrite_config(folder, num_hidden_layers=1)
    assert "unexpected tensor 'model.layers.1." in refusal(folder)


def test_a_wrong_shape_is_named_with_both_shapes(tmp_path: Path) -> None:
    config = tiny_config("llama")
    weights = tiny_weights(config)
    name = "model.layers.0.mlp.down_proj.weight"
    weights[name] = np.ascontiguousarray(weights[name].T)
    message = refusal(write_folder(tmp_path / "model", config, weights))
    assert f"'{name}' has shape [96, 64]" in message
    assert "asks for [64, 96]" in message


def test_a_head_that_contradicts_a_tied_configuration_is_refused(tmp_path: Path) -> None:
    config = tiny_config("llama", tie_word_embeddings=False)
    folder = write_folder(tmp_path / "model", config, tiny_weights(config))
    rewrite_config(folder, tie_word_embeddings=True)
    message = refusal(folder)
    assert "config.json ties the head to the embedding" in message
    assert "'lm_head.weight' differs from 'model.embed_tokens.weight'" in message


def test_a_head_that_repeats_a_tied_embedding_is_left_out_and_said_to_be(tmp_path: Path) -> None:
    config = tiny_config("llama", tie_word_embeddings=True)
    weights = tiny_weights(config)
    weights["lm_head.weight"] = weights["model.embed_tokens.weight"]
    report = export(write_folder(tmp_path / "model", config, weights), tmp_path / "bundle")
    assert "head" not in read_manifest(tmp_path / "bundle")["target"]["tensors"]
    assert report.notes[0].startswith("left out lm_head.weight: the same numbers")


def test_an_untied_configuration_without_a_head_is_refused(tmp_path: Path) -> None:
    config = tiny_config("llama", tie_word_embeddings=True)
    folder = write_folder(tmp_path / "model", config, tiny_weights(config))
    rewrite_config(folder, tie_word_embeddings=False)
    assert "tensor 'lm_head.weight' is missing" in refusal(folder)


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_weights_that_are_not_finite_are_named(tmp_path: Path, value: float) -> None:
    config = tiny_config("llama")
    weights = tiny_weights(config)
    weights["model.layers.1.mlp.up_proj.weight"][3, 5] = value
    message = refusal(write_folder(tmp_path / "model", config, weights))
    assert "'model.layers.1.mlp.up_proj.weight' holds values that are not finite" in message


def test_weights_too_large_for_a_scale_are_named(tmp_path: Path) -> None:
    config = tiny_config("llama")
    weights = tiny_weights(config)
    weights["model.layers.1.mlp.up_proj.weight"][3, 5] = 1e6
    message = refusal(write_folder(tmp_path / "model", config, weights))
    assert "'model.layers.1.mlp.up_proj.weight' holds values too large" in message


def test_integer_weights_are_refused(tmp_path: Path) -> None:
    config = tiny_config("llama")
    weights: dict[str, Any] = dict(tiny_weights(config))
    name = "model.layers.1.mlp.up_proj.weight"
    weights[name] = weights[name].astype(np.int8)
    message = refusal(write_folder(tmp_path / "model", config, weights))
    assert f"'{name}' is I8, not plain floating point" in message


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        (lambda data: data[:5], "truncated: 5 bytes are no safetensors"),
        (lambda data: data[:100], "truncated: the header needs"),
        (lambda data: data[:-50], "truncated or damaged"),
        (lambda data: b"PK\x03\x04" + data[4:], "truncated: the header needs"),
        (lambda data: b"\xff" * 8 + data[8:], "not a safetensors file"),
        (lambda data: data[:8] + b"[" + data[9:], "not a safetensors file: the header is no JSON"),
        (lambda data: data.replace(b'"F32"', b'"F99"', 1), "unknown type F99"),
        (lambda data: data.replace(b'"F32"', b'"F16"', 1), "bytes for the shape"),
    ],
)
def test_a_damaged_safetensors_file_is_refused(tmp_path: Path, damage: Any, words: str) -> None:
    config = tiny_config("llama")
    folder = write_folder(tmp_path / "model", config, tiny_weights(config))
    path = folder / "model.safetensors"
    path.write_bytes(damage(path.read_bytes()))
    message = refusal(folder)
    assert words in message
    assert "model.safetensors" in message


@pytest.mark.parametrize("name", ["config.json", "model.safetensors.index.json"])
@pytest.mark.parametrize("content", ["{", "[1]", '"text"', ""])
def test_a_damaged_json_file_is_refused_by_name(model: Path, name: str, content: str) -> None:
    (model / name).write_text(content)
    assert name in refusal(model)


def test_a_path_that_is_no_model_is_refused(tmp_path: Path) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    assert "neither config.json nor a .gguf file" in refusal(empty)
    assert "no such file or folder" in refusal(tmp_path / "absent")


def test_a_safetensors_file_alone_is_not_a_model(model: Path) -> None:
    with pytest.raises(SapwoodError, match="give the folder that holds it"):
        open_source(model / "model-00001-of-00003.safetensors")
