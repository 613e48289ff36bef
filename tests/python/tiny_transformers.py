"""Small random models of each family, made by transformers and saved as their own folders."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import torch
import transformers

from tiny_models import VOCABULARY, write_tokenizer

torch.set_num_threads(1)  # models this small lose time to threads that wait for each other

COMMON = {
    "vocab_size": VOCABULARY,
    "hidden_size": 64,
    "intermediate_size": 96,
    "num_hidden_layers": 2,
    "num_attention_heads": 4,
    "num_key_value_heads": 2,
    "max_position_embeddings": 256,
    "rms_norm_eps": 1e-5,
    "tie_word_embeddings": True,
}
LLAMA3_ROPE = {
    "rope_type": "llama3",
    "rope_theta": 10000.0,
    "factor": 8.0,
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 32,
}
FAMILIES = ("llama", "llama3", "qwen2", "qwen3", "gemma3")


def tiny_model(family: str) -> Any:
    """A model with random weights, biases and norms, large enough that every part matters."""
    torch.manual_seed(hash_of(family))
    if family == "llama":
        config: Any = transformers.LlamaConfig(**COMMON)
        model: Any = transformers.LlamaForCausalLM(config)
    elif family == "llama3":
        untied = COMMON | {"tie_word_embeddings": False, "rope_parameters": LLAMA3_ROPE}
        model = transformers.LlamaForCausalLM(transformers.LlamaConfig(**untied))
    elif family == "qwen2":
        model = transformers.Qwen2ForCausalLM(transformers.Qwen2Config(**COMMON))
    elif family == "qwen3":
        model = transformers.Qwen3ForCausalLM(transformers.Qwen3Config(**COMMON, head_dim=32))
    else:
        config = transformers.Gemma3TextConfig(
            **COMMON | {"num_hidden_layers": 3},
            head_dim=32,
            query_pre_attn_scalar=24,
            sliding_window=8,
            layer_types=["sliding_attention", "full_attention", "sliding_attention"],
        )
        model = transformers.Gemma3ForCausalLM(config)
    with torch.no_grad():
        for name, parameter in model.named_parameters():
            if parameter.ndim == 1:  # norms and biases start as ones or zeros, which hide mistakes
                parameter.add_(0.2 * torch.randn_like(parameter))
            elif "embed_tokens" in name or "lm_head" in name:
                parameter.copy_(torch.randn_like(parameter) / 8)
            else:
                parameter.copy_(torch.randn_like(parameter) / parameter.shape[1] ** 0.5)
    return model.float().eval()


def hash_of(family: str) -> int:
    """A seed for each family."""
    return FAMILIES.index(family)


def save_model(model: Any, folder: Path, family: str) -> Path:
    """The model's folder with config, safetensors and a tokenizer."""
    model.save_pretrained(folder)
    write_tokenizer(folder, "gemma3" if family == "gemma3" else "llama")
    return folder


def load_bundle_numbers(model: Any, weights: Mapping[str, Any], family: str) -> None:
    """Puts a bundle's dequantised weights into the transformers model, undoing its layout."""
    config = model.config
    head_dim = getattr(config, "head_dim", None) or config.hidden_size // config.num_attention_heads
    queries = config.num_attention_heads * head_dim
    keys = config.num_key_value_heads * head_dim
    shift = 1.0 if family == "gemma3" else 0.0  # transformers keeps Gemma's norms as w - 1
    norms = {
        "attention_norm": "input_layernorm",
        "mlp_norm": "post_attention_layernorm",
        "q_norm": "self_attn.q_norm",
        "k_norm": "self_attn.k_norm",
    }
    if family == "gemma3":
        norms["mlp_norm"] = "pre_feedforward_layernorm"
        norms["attention_post_norm"] = "post_attention_layernorm"
        norms["mlp_post_norm"] = "post_feedforward_layernorm"
    state = {
        "model.embed_tokens.weight": weights["embedding"],
        "model.norm.weight": weights["final_norm"] - shift,
        "lm_head.weight": weights.get("head", weights["embedding"]),
    }
    for layer in range(config.num_hidden_layers):
        ours, theirs = f"layers.{layer}.", f"model.layers.{layer}."
        for name, other in norms.items():
            if ours + name in weights:
                state[f"{theirs}{other}.weight"] = weights[ours + name] - shift
        for part, rows in zip(
            "qkv", torch.split(weights[ours + "qkv"], [queries, keys, keys]), strict=True
        ):
            state[f"{theirs}self_attn.{part}_proj.weight"] = rows
        if ours + "qkv_bias" in weights:
            biases = torch.split(weights[ours + "qkv_bias"], [queries, keys, keys])
            for part, bias in zip("qkv", biases, strict=True):
                state[f"{theirs}self_attn.{part}_proj.bias"] = bias
        state[f"{theirs}self_attn.o_proj.weight"] = weights[ours + "output"]
        panels = weights[ours + "gate_up"].reshape(-1, 2, 16, config.hidden_size)
        state[f"{theirs}mlp.gate_proj.weight"] = panels[:, 0].reshape(-1, config.hidden_size)
        state[f"{theirs}mlp.up_proj.weight"] = panels[:, 1].reshape(-1, config.hidden_size)
        state[f"{theirs}mlp.down_proj.weight"] = weights[ours + "down"]
    model.load_state_dict(state, strict=True)
