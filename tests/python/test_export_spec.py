"""The spec and the rotary frequencies, from either way of writing a configuration."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from sapwood.errors import SapwoodError
from sapwood_export.sources.huggingface_config import read_spec
from sapwood_export.spec import ModelSpec, Rope
from tiny_models import FAMILIES, tiny_config

HERE = Path("config.json")
LLAMA3 = {
    "rope_type": "llama3",
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 64,
}


def refusal(config: dict[str, Any]) -> str:
    with pytest.raises(SapwoodError) as caught:
        read_spec(HERE, config)
    message = str(caught.value)
    assert "\n" not in message
    return message


@pytest.mark.parametrize("family", FAMILIES)
def test_a_spec_survives_the_manifest(family: str) -> None:
    spec, _, _ = read_spec(HERE, tiny_config(family))
    assert spec.family == family
    assert ModelSpec.from_manifest(spec.to_manifest()) == spec


def test_each_family_has_its_own_parts() -> None:
    parts = {}
    for family in FAMILIES:
        spec, _, local = read_spec(HERE, tiny_config(family))
        parts[family] = (spec.qkv_bias, spec.qk_norm, spec.post_norms, local is not None)
    assert parts == {
        "llama": (False, False, False, False),
        "qwen2": (True, False, False, False),
        "qwen3": (False, True, False, False),
        "gemma3": (False, True, True, True),
    }


def test_gemmas_sixth_layer_sees_everything() -> None:
    spec, rope, local = read_spec(HERE, tiny_config("gemma3"))
    assert spec.layer_is_sliding == (True,) * 5 + (False, True)
    assert spec.sliding_window == 16
    assert spec.embedding_scale == 8.0
    assert spec.attention_scale == 32**-0.5
    assert spec.activation == "gelu_tanh"
    assert local is not None
    assert (rope.base, local.base) == (1e6, 1e4)


def test_gemmas_nested_configuration_is_read() -> None:
    text = tiny_config("gemma3", tie_word_embeddings=None)
    whole = {"model_type": "gemma3", "text_config": text, "eos_token_id": [1, 106]}
    spec, _, _ = read_spec(HERE, whole)
    assert spec == read_spec(HERE, {**text, "tie_word_embeddings": True})[0]


def test_values_that_gemmas_file_leaves_out_are_those_of_transformers() -> None:
    sparse = {"model_type": "gemma3", "text_config": {"model_type": "gemma3_text"}}
    transformers = pytest.importorskip("transformers")
    reference = transformers.Gemma3TextConfig()
    spec, rope, local = read_spec(HERE, sparse)
    assert spec.vocabulary_size == reference.vocab_size
    assert spec.hidden_size == reference.hidden_size
    assert spec.intermediate_size == reference.intermediate_size
    assert spec.layers == reference.num_hidden_layers
    assert (spec.heads, spec.kv_heads) == (
        reference.num_attention_heads,
        reference.num_key_value_heads,
    )
    assert spec.head_dim == reference.head_dim
    assert spec.context_length == reference.max_position_embeddings
    assert spec.sliding_window == reference.sliding_window
    assert spec.tied_head is reference.tie_word_embeddings
    kinds = [
        "sliding_attention" if sliding else "full_attention" for sliding in spec.layer_is_sliding
    ]
    assert kinds == reference.layer_types
    assert local is not None
    assert rope.base == reference.rope_parameters["full_attention"]["rope_theta"]
    assert local.base == reference.rope_parameters["sliding_attention"]["rope_theta"]


@pytest.mark.parametrize("family", FAMILIES)
def test_the_new_way_to_write_rotary_parameters_means_the_same(family: str) -> None:
    old = tiny_config(family)
    new = dict(old)
    base = new.pop("rope_theta")
    if family == "gemma3":
        local = new.pop("rope_local_base_freq")
        new["rope_parameters"] = {
            "full_attention": {"rope_type": "default", "rope_theta": base},
            "sliding_attention": {"rope_type": "default", "rope_theta": local},
        }
    else:
        new["rope_parameters"] = {"rope_type": "default", "rope_theta": base}
    assert read_spec(HERE, new) == read_spec(HERE, old)


def transformers_frequencies(config: dict[str, Any], layer_type: str | None = None) -> np.ndarray:
    transformers = pytest.importorskip("transformers")
    from transformers.modeling_rope_utils import ROPE_INIT_FUNCTIONS

    kinds = {
        "llama": transformers.LlamaConfig,
        "qwen2": transformers.Qwen2Config,
        "qwen3": transformers.Qwen3Config,
        "gemma3_text": transformers.Gemma3TextConfig,
    }
    reference = kinds[config["model_type"]](
        **{k: v for k, v in config.items() if k != "model_type"}
    )
    parameters = reference.rope_parameters
    if layer_type is not None:
        parameters = parameters[layer_type]
    if parameters["rope_type"] == "default":
        head_dim = config.get("head_dim", config["hidden_size"] // config["num_attention_heads"])
        exponents = np.arange(0, head_dim, 2, dtype=np.float64) / head_dim
        return parameters["rope_theta"] ** -exponents
    layer = {} if layer_type is None else {"layer_type": layer_type}
    function = ROPE_INIT_FUNCTIONS[parameters["rope_type"]]
    frequencies, attention_factor = function(reference, "cpu", **layer)
    assert attention_factor == 1.0
    return np.asarray(frequencies)


@pytest.mark.parametrize(
    ("family", "changes"),
    [
        ("llama", {}),
        ("llama", {"rope_scaling": LLAMA3}),
        ("llama", {"rope_scaling": LLAMA3, "rope_theta": 500000.0, "head_dim": 32}),
        ("llama", {"rope_scaling": {"type": "linear", "factor": 2.5}}),
        ("qwen2", {"rope_theta": 1000000.0}),
        ("qwen3", {"rope_scaling": {"rope_type": "linear", "factor": 4.0}}),
    ],
)
def test_frequencies_are_those_of_transformers(family: str, changes: dict[str, Any]) -> None:
    config = tiny_config(family, **changes)
    spec, rope, _ = read_spec(HERE, config)
    expected = transformers_frequencies(config)
    assert np.allclose(rope.inverse_frequencies(spec.head_dim), expected, rtol=1e-6)


def test_gemmas_scaling_stretches_only_the_layers_that_see_everything() -> None:
    config = tiny_config("gemma3", rope_scaling={"rope_type": "linear", "factor": 8.0})
    spec, rope, local = read_spec(HERE, config)
    assert local is not None
    for kind, mine in (("full_attention", rope), ("sliding_attention", local)):
        expected = transformers_frequencies(config, kind)
        assert np.allclose(mine.inverse_frequencies(spec.head_dim), expected, rtol=1e-6)


def test_llama3_scaling_keeps_high_and_divides_low_frequencies() -> None:
    plain = Rope(base=500000.0).inverse_frequencies(64)
    scaled = Rope(
        base=500000.0,
        scaling="llama3",
        factor=32.0,
        low_frequency_factor=1.0,
        high_frequency_factor=4.0,
        original_context=8192,
    ).inverse_frequencies(64)
    assert scaled[0] == plain[0]
    assert scaled[-1] == pytest.approx(plain[-1] / 32)
    assert np.all(np.diff(scaled) < 0)


@pytest.mark.parametrize("kind", ["yarn", "dynamic", "longrope", "su"])
def test_an_unsupported_rope_scaling_is_named(kind: str) -> None:
    message = refusal(tiny_config("llama", rope_scaling={"rope_type": kind, "factor": 2.0}))
    assert f"rope scaling '{kind}' is not supported" in message


def test_qwens_sliding_layers_are_those_above_the_named_one() -> None:
    spec, rope, local = read_spec(HERE, tiny_config("qwen2", use_sliding_window=True))
    assert spec.layer_is_sliding == (False, True)
    assert spec.sliding_window == 32
    assert local == rope


def test_an_unused_sliding_window_is_not_used() -> None:
    spec, _, local = read_spec(HERE, tiny_config("qwen2", use_sliding_window=False))
    assert spec.sliding_window == 0
    assert local is None


@pytest.mark.parametrize(
    ("family", "changes", "words"),
    [
        ("llama", {"model_type": "mamba"}, "unknown family 'mamba'; known are llama"),
        ("llama", {"hidden_size": None}, "'hidden_size' is missing"),
        ("llama", {"hidden_size": "64"}, "'hidden_size' is '64', not a number"),
        ("llama", {"num_hidden_layers": 1.5}, "is 1.5, not a whole number"),
        ("llama", {"num_hidden_layers": 2**31}, "2147483648 layers; 1 to 4096 are possible"),
        ("llama", {"num_hidden_layers": 0}, "0 layers; 1 to 4096 are possible"),
        ("llama", {"num_attention_heads": 0}, "0 attention heads"),
        ("llama", {"num_key_value_heads": 3}, "not a multiple of 3 key-value heads"),
        ("llama", {"intermediate_size": 100}, "intermediate size is 100, not a multiple of 32"),
        ("llama", {"hidden_act": "relu"}, "activation 'relu' is not supported"),
        ("llama", {"attention_bias": True}, "'attention_bias' is not supported"),
        ("llama", {"mlp_bias": True}, "'mlp_bias' is not supported"),
        ("llama", {"partial_rotary_factor": 0.5}, "rotation of a part of each head"),
        ("llama", {"quantization_config": {"bits": 4}}, "already quantised"),
        ("llama", {"tie_word_embeddings": "yes"}, "neither true nor false"),
        ("llama", {"rope_scaling": {**LLAMA3, "factor": 0}}, "'factor' is 0"),
        ("gemma3", {"final_logit_softcapping": 30.0}, "'final_logit_softcapping'"),
        ("gemma3", {"layer_types": ["full_attention"]}, "does not list 7 layers"),
        ("gemma3", {"layer_types": ["chunked_attention"] * 7}, "'chunked_attention'"),
        ("gemma3", {"use_bidirectional_attention": True}, "'use_bidirectional_attention'"),
    ],
)
def test_what_the_configuration_cannot_mean_is_named(
    family: str, changes: dict[str, Any], words: str
) -> None:
    message = refusal(tiny_config(family, **changes))
    assert words in message
    assert "config.json" in message
