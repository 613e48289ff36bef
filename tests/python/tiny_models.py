"""Small random models of every family, as Hugging Face folders and as GGUF files.

The numbers are random, the files are as real ones are. Both writers start from one set of weights
under Hugging Face's names, so a model can be written in several ways and compared.
"""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray
from safetensors.numpy import save_file

from tiny_tokenizers import byte_level_tokenizer, gemma_pieces, gemma_tokenizer_json

FAMILIES = ("llama", "qwen2", "qwen3", "gemma3")
VOCABULARY = 512
CHAT_TEMPLATE = (
    "{% for message in messages %}<|im_start|>{{ message['role'] }}\n"
    "{{ message['content'] }}<|im_end|>\n{% endfor %}"
)

Weights = dict[str, NDArray[np.float32]]


def tiny_config(family: str, **changes: Any) -> dict[str, Any]:
    """A config.json as transformers 4 wrote them; ``changes`` replace entries, None removes one."""
    config: dict[str, Any] = {
        "model_type": family,
        "architectures": ["LlamaForCausalLM"],
        "vocab_size": VOCABULARY,
        "hidden_size": 64,
        "intermediate_size": 96,
        "num_hidden_layers": 2,
        "num_attention_heads": 4,
        "num_key_value_heads": 2,
        "max_position_embeddings": 256,
        "rms_norm_eps": 1e-5,
        "hidden_act": "silu",
        "rope_theta": 10000.0,
        "rope_scaling": None,
        "tie_word_embeddings": True,
        "bos_token_id": 1,
        "eos_token_id": 2,
        "torch_dtype": "float32",
    }
    if family == "qwen2":
        config |= {"architectures": ["Qwen2ForCausalLM"], "use_sliding_window": False}
        config |= {"sliding_window": 32, "max_window_layers": 1, "bos_token_id": None}
    if family == "qwen3":
        config |= {"architectures": ["Qwen3ForCausalLM"], "head_dim": 32, "bos_token_id": None}
    if family == "gemma3":
        config |= {
            "model_type": "gemma3_text",
            "architectures": ["Gemma3ForCausalLM"],
            "num_hidden_layers": 7,
            "head_dim": 32,
            "hidden_activation": "gelu_pytorch_tanh",
            "query_pre_attn_scalar": 32,
            "sliding_window": 16,
            "sliding_window_pattern": 6,
            "rope_theta": 1000000.0,
            "rope_local_base_freq": 10000.0,
            "rms_norm_eps": 1e-6,
            "bos_token_id": 2,
            "eos_token_id": 1,
        }
        del config["hidden_act"]
    config |= changes
    return {key: value for key, value in config.items() if value is not None}


def tiny_weights(config: Mapping[str, Any], seed: int = 0) -> Weights:
    """Random weights under Hugging Face's names, of a size that keeps logits near one."""
    generator = np.random.default_rng(seed)
    hidden, intermediate = config["hidden_size"], config["intermediate_size"]
    heads, keys = config["num_attention_heads"], config["num_key_value_heads"]
    head_dim = config.get("head_dim", hidden // heads)
    gemma = config["model_type"] == "gemma3_text"

    def matrix(outputs: int, inputs: int) -> NDArray[np.float32]:
        return (generator.standard_normal((outputs, inputs)) / inputs**0.5).astype(np.float32)

    def norm(size: int) -> NDArray[np.float32]:
        around = 0.0 if gemma else 1.0
        return (around + 0.2 * generator.standard_normal(size)).astype(np.float32)

    weights: Weights = {"model.embed_tokens.weight": matrix(config["vocab_size"], hidden)}
    for layer in range(config["num_hidden_layers"]):
        start = f"model.layers.{layer}."
        attention = start + "self_attn."
        weights[start + "input_layernorm.weight"] = norm(hidden)
        weights[start + "post_attention_layernorm.weight"] = norm(hidden)
        if gemma:
            weights[start + "pre_feedforward_layernorm.weight"] = norm(hidden)
            weights[start + "post_feedforward_layernorm.weight"] = norm(hidden)
        for name, outputs in (("q", heads), ("k", keys), ("v", keys)):
            weights[f"{attention}{name}_proj.weight"] = matrix(outputs * head_dim, hidden)
            if config["model_type"] == "qwen2":
                bias = 0.1 * generator.standard_normal(outputs * head_dim)
                weights[f"{attention}{name}_proj.bias"] = bias.astype(np.float32)
        if config["model_type"] in ("qwen3", "gemma3_text"):
            weights[attention + "q_norm.weight"] = norm(head_dim)
            weights[attention + "k_norm.weight"] = norm(head_dim)
        weights[attention + "o_proj.weight"] = matrix(hidden, heads * head_dim)
        weights[start + "mlp.gate_proj.weight"] = matrix(intermediate, hidden)
        weights[start + "mlp.up_proj.weight"] = matrix(intermediate, hidden)
        weights[start + "mlp.down_proj.weight"] = matrix(hidden, intermediate)
    weights["model.norm.weight"] = norm(hidden)
    if not config["tie_word_embeddings"]:
        weights["lm_head.weight"] = matrix(config["vocab_size"], hidden)
    return weights


def write_folder(
    folder: Path,
    config: Mapping[str, Any],
    weights: Mapping[str, NDArray[Any]],
    *,
    shards: int = 1,
    rename: Callable[[str], str] = lambda name: name,
) -> Path:
    """A model folder with config, weights in one or several files, and tokenizer."""
    folder.mkdir(parents=True, exist_ok=True)
    (folder / "config.json").write_text(json.dumps(config))
    renamed = {rename(name): np.ascontiguousarray(value) for name, value in weights.items()}
    if shards == 1:
        save_file(renamed, folder / "model.safetensors")
    else:
        names = list(renamed)
        weight_map = {}
        for number in range(shards):
            file = f"model-{number + 1:05d}-of-{shards:05d}.safetensors"
            own = names[number::shards]
            save_file({name: renamed[name] for name in own}, folder / file)
            weight_map |= dict.fromkeys(own, file)
        index = {"metadata": {"total_size": 0}, "weight_map": weight_map}
        (folder / "model.safetensors.index.json").write_text(json.dumps(index))
    text = config.get("text_config", config)
    write_tokenizer(folder, "gemma3" if text["model_type"].startswith("gemma3") else "llama")
    return folder


def write_tokenizer(folder: Path, family: str) -> None:
    """tokenizer.json and tokenizer_config.json with a chat template."""
    if family == "gemma3":
        (folder / "tokenizer.json").write_text(gemma_tokenizer_json())
        config = {"bos_token": "<bos>", "eos_token": "<eos>", "add_bos_token": True}
    else:
        (folder / "tokenizer.json").write_text(byte_level_tokenizer().to_str())
        config = {"bos_token": "<|im_start|>", "eos_token": "<|im_end|>"}
    config |= (
        {"chat_template": CHAT_TEMPLATE, "unk_token": "<unk>"}
        if family == "gemma3"
        else {"chat_template": CHAT_TEMPLATE}
    )
    (folder / "tokenizer_config.json").write_text(json.dumps(config))


_GGUF_LAYER_NAMES = {
    "self_attn.q_proj": "attn_q",
    "self_attn.k_proj": "attn_k",
    "self_attn.v_proj": "attn_v",
    "self_attn.o_proj": "attn_output",
    "self_attn.q_norm": "attn_q_norm",
    "self_attn.k_norm": "attn_k_norm",
    "mlp.gate_proj": "ffn_gate",
    "mlp.up_proj": "ffn_up",
    "mlp.down_proj": "ffn_down",
    "input_layernorm": "attn_norm",
}


def gguf_name(name: str, gemma: bool) -> str:
    """What llama.cpp calls a tensor of Hugging Face's name."""
    whole = {
        "model.embed_tokens.weight": "token_embd.weight",
        "model.norm.weight": "output_norm.weight",
        "lm_head.weight": "output.weight",
    }
    if name in whole:
        return whole[name]
    _, _, layer, *middle, kind = name.split(".")
    names = dict(_GGUF_LAYER_NAMES)
    if gemma:
        names["post_attention_layernorm"] = "post_attention_norm"
        names["pre_feedforward_layernorm"] = "ffn_norm"
        names["post_feedforward_layernorm"] = "post_ffw_norm"
    else:
        names["post_attention_layernorm"] = "ffn_norm"
    return f"blk.{layer}.{names['.'.join(middle)]}.{kind}"


def permute_like_llama_cpp(weight: NDArray[Any], heads: int) -> NDArray[Any]:
    """Rows of q or k from the rotate-half order to neighbouring pairs, as llama.cpp's converter."""
    half = weight.shape[0] // heads // 2
    return weight.reshape(heads, 2, half, -1).swapaxes(1, 2).reshape(weight.shape)


def write_gguf(
    path: Path,
    config: Mapping[str, Any],
    weights: Mapping[str, NDArray[np.float32]],
    *,
    format_of: Callable[[str], str] = lambda name: "F32",
    shards: int = 1,
    metadata: Mapping[str, Any] | None = None,
    extra: Mapping[str, NDArray[np.float32]] | None = None,
    tokenizer: bool = True,
) -> Path:
    """A GGUF file, matrices in the format that ``format_of`` gives for llama.cpp's name.

    ``metadata`` overrides keys (None leaves one out), ``extra`` adds tensors. With several shards
    the files are named after ``path``'s stem, and the first one's path is returned.
    """
    import gguf

    family = str(config["model_type"]).removesuffix("_text")
    gemma = family == "gemma3"
    heads = config["num_attention_heads"]
    values: dict[str, Any] = {
        "block_count": config["num_hidden_layers"],
        "context_length": config["max_position_embeddings"],
        "embedding_length": config["hidden_size"],
        "feed_forward_length": config["intermediate_size"],
        "attention.head_count": heads,
        "attention.head_count_kv": config["num_key_value_heads"],
        "rope.freq_base": float(config["rope_theta"]),
        "attention.layer_norm_rms_epsilon": float(config["rms_norm_eps"]),
    }
    if "head_dim" in config:
        values |= {"attention.key_length": config["head_dim"]}
        values |= {"attention.value_length": config["head_dim"]}
    if gemma:
        values["attention.sliding_window"] = config["sliding_window"]
    values |= metadata or {}
    tensors: dict[str, NDArray[np.float32]] = {}
    for name, weight in weights.items():
        if family == "llama" and ("q_proj" in name or "k_proj" in name):
            count = heads if "q_proj" in name else config["num_key_value_heads"]
            weight = permute_like_llama_cpp(weight, count)
        if gemma and name.endswith("norm.weight"):
            weight = weight + np.float32(1)
        tensors[gguf_name(name, gemma)] = weight
    tensors |= extra or {}

    split = -(-len(tensors) // shards) if shards > 1 else 0
    writer = gguf.GGUFWriter(path, family, split_max_tensors=split)
    for key, value in values.items():
        if isinstance(value, bool):
            writer.add_bool(f"{family}.{key}", value)
        elif isinstance(value, int):
            writer.add_uint32(f"{family}.{key}", value)
        elif isinstance(value, float):
            writer.add_float32(f"{family}.{key}", value)
        elif isinstance(value, str):
            writer.add_string(f"{family}.{key}", value)
        elif isinstance(value, list):
            writer.add_array(f"{family}.{key}", value)
    if tokenizer:
        add_gguf_tokenizer(writer, family)
    for name, tensor in tensors.items():
        kind = gguf.GGMLQuantizationType[format_of(name) if tensor.ndim == 2 else "F32"]
        if kind in (gguf.GGMLQuantizationType.F32, gguf.GGMLQuantizationType.F16):
            dtype = np.float32 if kind == gguf.GGMLQuantizationType.F32 else np.float16
            writer.add_tensor(name, tensor.astype(dtype))
        else:
            blocks = gguf.quants.quantize(tensor, kind)
            writer.add_tensor(name, blocks, raw_dtype=kind)
    writer.write_header_to_file()
    writer.write_kv_data_to_file()
    writer.write_tensors_to_file()
    writer.close()
    if shards == 1:
        return path
    return path.with_name(f"{path.stem}-00001-of-{shards:05d}.gguf")


def add_gguf_tokenizer(writer: Any, family: str) -> None:
    """The tokenizer's keys, as llama.cpp's converter writes them."""
    if family == "gemma3":
        pieces = gemma_pieces()
        writer.add_tokenizer_model("llama")
        writer.add_tokenizer_pre("default")
        writer.add_token_list([piece for piece, _, _ in pieces])
        writer.add_token_scores([score for _, score, _ in pieces])
        writer.add_token_types([kind for _, _, kind in pieces])
        writer.add_bos_token_id(2)
        writer.add_eos_token_id(1)
        writer.add_unk_token_id(3)
        writer.add_pad_token_id(0)
        writer.add_add_bos_token(True)
        return
    description = json.loads(byte_level_tokenizer().to_str())
    vocabulary: dict[str, int] = description["model"]["vocab"]
    special = {token["content"] for token in description["added_tokens"]}
    tokens = sorted(vocabulary, key=vocabulary.__getitem__)
    writer.add_tokenizer_model("gpt2")
    writer.add_tokenizer_pre("smollm")
    writer.add_token_list(tokens)
    writer.add_token_types([3 if token in special else 1 for token in tokens])
    writer.add_token_merges([" ".join(pair) for pair in description["model"]["merges"]])
    writer.add_bos_token_id(1)
    writer.add_eos_token_id(2)
    writer.add_add_bos_token(False)
    writer.add_chat_template(CHAT_TEMPLATE)
