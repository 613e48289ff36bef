"""A Hugging Face model folder: config.json, safetensors in one file or many, tokenizer."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import numpy as np

from sapwood.errors import SapwoodError
from sapwood_export.sources.base import (
    ModelSource,
    ShiftedTensor,
    SourceTensor,
    check_tensors,
    expected_shapes,
    refuse_unexpected,
)
from sapwood_export.sources.huggingface_config import read_spec
from sapwood_export.sources.safetensors_file import SafetensorsFile
from sapwood_export.spec import ModelSpec
from sapwood_export.tokenizer import read_json, tokenizer_from_folder

INDEX = "model.safetensors.index.json"
SINGLE = "model.safetensors"

_PREFIXES = ("model.", "", "model.language_model.", "language_model.model.")
_HEADS = ("lm_head.weight", "language_model.lm_head.weight")
_OTHER_TOWERS = ("vision_tower", "multi_modal_projector")
_COMPUTED = ".rotary_emb.inv_freq"  # old checkpoints carry it; it follows from the configuration

_MODEL_NAMES = {"embedding": "embed_tokens.weight", "final_norm": "norm.weight"}
_LAYER_NAMES = {
    "attention_norm": "input_layernorm.weight",
    "mlp_norm": "post_attention_layernorm.weight",
    "q": "self_attn.q_proj.weight",
    "k": "self_attn.k_proj.weight",
    "v": "self_attn.v_proj.weight",
    "output": "self_attn.o_proj.weight",
    "q_bias": "self_attn.q_proj.bias",
    "k_bias": "self_attn.k_proj.bias",
    "v_bias": "self_attn.v_proj.bias",
    "q_norm": "self_attn.q_norm.weight",
    "k_norm": "self_attn.k_norm.weight",
    "gate": "mlp.gate_proj.weight",
    "up": "mlp.up_proj.weight",
    "down": "mlp.down_proj.weight",
}
_GEMMA3_LAYER_NAMES = {
    **_LAYER_NAMES,
    "attention_post_norm": "post_attention_layernorm.weight",
    "mlp_norm": "pre_feedforward_layernorm.weight",
    "mlp_post_norm": "post_feedforward_layernorm.weight",
}


def open_folder(folder: Path) -> ModelSource:
    """Opens and checks a model folder."""
    config_path = folder / "config.json"
    config = read_json(config_path)
    spec, rope_global, rope_local = read_spec(config_path, config)
    files = _open_files(folder)
    tensors = {name: tensor for file in files for name, tensor in file.tensors.items()}
    notes: list[str] = []
    prefix = _prefix(folder, tensors)
    file_names = {name: _file_name(name, prefix, spec) for name in expected_shapes(spec)}
    head = next((name for name in _HEADS if name in tensors), None)
    if head is not None:
        file_names["head"] = head
    named: dict[str, SourceTensor] = {}
    for name, file_name in file_names.items():
        tensor = tensors.pop(file_name, None)
        if tensor is not None:
            named[name] = tensor
    for tower in _OTHER_TOWERS:
        starts = tuple(start + tower + "." for start in _PREFIXES)
        others = [name for name in tensors if name.startswith(starts)]
        for name in others:
            del tensors[name]
        if others:
            notes.append(f"left out {len(others)} tensors of {tower}, which is for pictures")
    unexpected = [name for name in tensors if not name.endswith(_COMPUTED)]
    refuse_unexpected(str(folder), unexpected, spec.family)
    check_tensors(str(folder), spec, named, file_names)
    _check_tied_head(folder, spec, named, notes)
    if spec.family == "gemma3":
        named = {
            name: ShiftedTensor(tensor, 1.0) if name.endswith("norm") else tensor
            for name, tensor in named.items()
        }
    generation = read_json(folder / "generation_config.json", optional=True)
    declarations = [part.get("eos_token_id") for part in (config, generation)]
    if isinstance(config.get("text_config"), dict):
        declarations.append(config["text_config"].get("eos_token_id"))
    return ModelSource(
        kind="huggingface",
        path=folder,
        name=folder.resolve().name,
        spec=spec,
        rope_global=rope_global,
        rope_local=rope_local,
        tensors=named,
        tokenizer=tokenizer_from_folder(folder, spec.vocabulary_size, declarations),
        notes=tuple(notes),
    )


def _open_files(folder: Path) -> list[SafetensorsFile]:
    """The model's files: exactly those that the index lists, or the single one."""
    present = {path.name for path in folder.glob("*.safetensors")}
    if not (folder / INDEX).is_file():
        if present == {SINGLE}:
            return [SafetensorsFile(folder / SINGLE)]
        if SINGLE in present:
            stray = sorted(present - {SINGLE})[0]
            raise SapwoodError(f"{folder / stray}: a stray file beside {SINGLE}; move it away")
        if present:
            raise SapwoodError(
                f"{folder}: has {sorted(present)[0]} but neither {SINGLE} nor {INDEX}, "
                "which says what belongs to the model"
            )
        raise SapwoodError(
            f"{folder}: no {SINGLE} and no {INDEX}; if the weights are in another format, "
            "save them with save_pretrained"
        )
    index = read_json(folder / INDEX)
    weight_map = index.get("weight_map")
    if not isinstance(weight_map, dict) or not weight_map:
        raise SapwoodError(f"{folder / INDEX}: no 'weight_map'")
    for tensor, name in weight_map.items():
        if not isinstance(name, str) or Path(name).name != name:
            raise SapwoodError(f"{folder / INDEX}: '{tensor}' is said to be in {name!r}")
    shards = sorted(set(weight_map.values()))
    for shard in shards:
        if shard not in present:
            count = sum(name == shard for name in weight_map.values())
            raise SapwoodError(
                f"{folder / shard}: this shard is missing, {INDEX} says it holds {count} tensors"
            )
    for stray in sorted(present - set(shards)):
        raise SapwoodError(f"{folder / stray}: a stray shard, {INDEX} does not list it")
    files = [SafetensorsFile(folder / shard) for shard in shards]
    for file in files:
        listed = {tensor for tensor, name in weight_map.items() if name == file.path.name}
        for tensor in sorted(listed - set(file.tensors)):
            raise SapwoodError(f"{file.path}: tensor '{tensor}' is missing, {INDEX} lists it here")
        for tensor in sorted(set(file.tensors) - listed):
            raise SapwoodError(f"{file.path}: a stray tensor '{tensor}', {INDEX} does not list it")
    return files


def _prefix(folder: Path, tensors: Mapping[str, Any]) -> str:
    for prefix in _PREFIXES:
        if prefix + _MODEL_NAMES["embedding"] in tensors:
            return prefix
    raise SapwoodError(f"{folder}: tensor 'model.embed_tokens.weight' is missing")


def _file_name(name: str, prefix: str, spec: ModelSpec) -> str:
    if name == "head":
        return _HEADS[0]
    if name in _MODEL_NAMES:
        return prefix + _MODEL_NAMES[name]
    _, layer, part = name.split(".")
    parts = _GEMMA3_LAYER_NAMES if spec.family == "gemma3" else _LAYER_NAMES
    return f"{prefix}layers.{layer}.{parts[part]}"


def _check_tied_head(
    folder: Path, spec: ModelSpec, named: dict[str, SourceTensor], notes: list[str]
) -> None:
    """A head beside a tied embedding has to be the same numbers; then it is left out."""
    if not spec.tied_head or "head" not in named:
        return
    head, embedding = named.pop("head"), named["embedding"]
    if not _same_numbers(head, embedding):
        raise SapwoodError(
            f"{folder}: config.json ties the head to the embedding, but '{head.name}' differs "
            f"from '{embedding.name}'; set tie_word_embeddings to false if the head is meant"
        )
    notes.append(f"left out {head.name}: the same numbers as {embedding.name}")


def _same_numbers(one: SourceTensor, other: SourceTensor) -> bool:
    if one.shape != other.shape:
        return False
    step = 4096
    for begin in range(0, one.shape[0], step):
        rows = np.arange(begin, min(begin + step, one.shape[0]))
        if not np.array_equal(one.read(rows), other.read(rows)):
            return False
    return True
