"""GGUF, single or split: tensors under our names, rows of q and k in the Hugging Face order."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from sapwood.errors import SapwoodError
from sapwood_export.gguf_tokenizer import tokenizer_from_gguf
from sapwood_export.sources.base import (
    ModelSource,
    PermutedRows,
    Rows,
    SourceTensor,
    check_tensors,
    expected_shapes,
    refuse_unexpected,
)
from sapwood_export.sources.gguf_header import GgufFile, GgufTensorInfo
from sapwood_export.sources.gguf_metadata import read_spec

PLAIN_FORMATS = {"F32": "<f4", "F16": "<f2", "F64": "<f8"}

_SPLIT_NAME = re.compile(r"^(?P<stem>.*)-(?P<number>\d{5})-of-(?P<count>\d{5})\.gguf$")

_NUMBER_FORMAT_SUFFIX = re.compile(r"[-._](I?Q\d\w*|B?F16|F32|MXFP4\w*)$", re.IGNORECASE)

_MODEL_NAMES = {
    "embedding": "token_embd.weight",
    "head": "output.weight",
    "final_norm": "output_norm.weight",
}
_LAYER_NAMES = {
    "attention_norm": "attn_norm.weight",
    "attention_post_norm": "post_attention_norm.weight",
    "mlp_norm": "ffn_norm.weight",
    "mlp_post_norm": "post_ffw_norm.weight",
    "q": "attn_q.weight",
    "k": "attn_k.weight",
    "v": "attn_v.weight",
    "output": "attn_output.weight",
    "q_bias": "attn_q.bias",
    "k_bias": "attn_k.bias",
    "v_bias": "attn_v.bias",
    "q_norm": "attn_q_norm.weight",
    "k_norm": "attn_k_norm.weight",
    "gate": "ffn_gate.weight",
    "up": "ffn_up.weight",
    "down": "ffn_down.weight",
}
ROPE_FACTORS = "rope_freqs.weight"


@dataclass(frozen=True)
class GgufTensor:
    """A tensor in a mapped GGUF file."""

    file: GgufFile
    info: GgufTensorInfo

    @property
    def name(self) -> str:
        return self.info.name

    @property
    def shape(self) -> tuple[int, ...]:
        return self.info.shape

    @property
    def format(self) -> str:
        return self.info.format

    def _raw(self) -> NDArray[np.uint8]:
        """uint8 [rows, bytes a row]; a vector is one row. A view of the mapped file."""
        raw = self.file.bytes[self.info.offset : self.info.offset + self.info.size]
        rows = self.shape[0] if len(self.shape) > 1 else 1
        return raw.reshape(rows, -1)

    def read(self, rows: Rows | None = None) -> NDArray[np.float32]:
        raw = self._raw()
        if len(self.shape) == 1:
            values = self._numbers(raw).reshape(-1)
            return values if rows is None else values[rows]
        if rows is not None:
            raw = raw[rows]
        return self._numbers(raw).reshape(len(raw), *self.shape[1:])

    def _numbers(self, raw: NDArray[np.uint8]) -> NDArray[np.float32]:
        if self.format in PLAIN_FORMATS:
            contiguous = np.ascontiguousarray(raw)
            return contiguous.view(PLAIN_FORMATS[self.format]).astype(np.float32)
        from gguf.constants import GGMLQuantizationType
        from gguf.quants import dequantize

        try:
            values = dequantize(np.ascontiguousarray(raw), GGMLQuantizationType[self.format])
        except NotImplementedError:
            raise SapwoodError(
                f"{self.file.path}: tensor '{self.name}' is {self.format}, "
                "which the gguf package cannot dequantise; convert the file to another format"
            ) from None
        return np.asarray(values, dtype=np.float32)

    def read_blocks(self, rows: Rows | None = None) -> NDArray[np.uint8] | None:
        if self.format in PLAIN_FORMATS or self.format == "BF16" or len(self.shape) != 2:
            return None
        raw = self._raw()
        return raw if rows is None else raw[rows]


def open_gguf(path: Path) -> ModelSource:
    """Opens and checks a GGUF file, or all the shards of the one whose name is given."""
    files = [GgufFile(shard) for shard in find_shards(path)]
    first = files[0]
    tensors = _merge(files)
    factors = tensors.pop(ROPE_FACTORS, None)
    tied = _MODEL_NAMES["head"] not in tensors
    vocabulary = tensors["token_embd.weight"].shape[0] if "token_embd.weight" in tensors else 0
    spec, rope_global, rope_local = read_spec(
        first.path,
        first.metadata,
        tied_head=tied,
        vocabulary=vocabulary,
        qkv_bias="blk.0.attn_q.bias" in tensors,
        rope_factors=None if factors is None else _read_vector(factors),
    )
    file_names = {name: _file_name(name) for name in expected_shapes(spec)}
    named: dict[str, SourceTensor] = {}
    for name, file_name in file_names.items():
        tensor = tensors.pop(file_name, None)
        if tensor is not None:
            named[name] = tensor
    refuse_unexpected(str(path), list(tensors), spec.family)
    check_tensors(str(path), spec, named, file_names)
    if spec.family == "llama":
        named = _undo_llama_permutation(named, spec.head_dim)
    return ModelSource(
        kind="gguf",
        path=path,
        name=_model_name(path),
        spec=spec,
        rope_global=rope_global,
        rope_local=rope_local,
        tensors=named,
        tokenizer=tokenizer_from_gguf(first.path, first.metadata, spec.vocabulary_size),
    )


def find_shards(path: Path) -> list[Path]:
    """The files of the model that ``path`` belongs to, in order; complete and nothing besides."""
    match = _SPLIT_NAME.match(path.name)
    if match is None:
        return [path]
    stem, count = match["stem"], int(match["count"])
    wanted = [
        path.with_name(f"{stem}-{number:05d}-of-{count:05d}.gguf") for number in range(1, count + 1)
    ]
    for shard in wanted:
        if not shard.is_file():
            raise SapwoodError(f"{shard}: this shard is missing, the model has {count}")
    for other in sorted(path.parent.iterdir()):
        other_match = _SPLIT_NAME.match(other.name)
        if other_match and other_match["stem"] == stem and other not in wanted:
            raise SapwoodError(
                f"{other}: a stray shard beside a model of {count} shards; move it away"
            )
    return wanted


def _merge(files: list[GgufFile]) -> dict[str, GgufTensor]:
    merged: dict[str, GgufTensor] = {}
    for number, file in enumerate(files):
        count = file.integer("split.count", 1)
        if count != len(files) and not (count == 0 and len(files) == 1):
            raise SapwoodError(
                f"{file.path}: one of {count} shards by its own account, {len(files)} by its name"
            )
        own_number = file.integer("split.no", number)
        if len(files) > 1 and own_number != number:
            raise SapwoodError(
                f"{file.path}: shard {own_number + 1} by its own account, {number + 1} by its name"
            )
        for name, info in file.tensors.items():
            if name in merged:
                raise SapwoodError(
                    f"{file.path}: tensor '{name}' is also in {merged[name].file.path.name}"
                )
            merged[name] = GgufTensor(file, info)
    declared = files[0].integer("split.tensors.count", len(merged))
    if len(files) > 1 and declared != len(merged):
        raise SapwoodError(
            f"{files[0].path}: {declared} tensors declared, the shards hold {len(merged)}"
        )
    return merged


def _model_name(path: Path) -> str:
    """The file's name without shard and number format: people know models by it.

    The key general.name often holds the name of a training run instead.
    """
    match = _SPLIT_NAME.match(path.name)
    stem = match["stem"] if match else path.name.removesuffix(".gguf")
    return _NUMBER_FORMAT_SUFFIX.sub("", stem) or stem


def _read_vector(tensor: GgufTensor) -> NDArray[np.float32]:
    if len(tensor.shape) != 1:
        raise SapwoodError(
            f"{tensor.file.path}: tensor '{tensor.name}' has shape {list(tensor.shape)}, "
            "a vector was expected"
        )
    return tensor.read()


def _file_name(name: str) -> str:
    if name in _MODEL_NAMES:
        return _MODEL_NAMES[name]
    _, layer, part = name.split(".")
    return f"blk.{layer}.{_LAYER_NAMES[part]}"


def _undo_llama_permutation(
    tensors: Mapping[str, SourceTensor], head_dim: int
) -> dict[str, SourceTensor]:
    """Puts the rows of llama's q and k, and their biases, back into the Hugging Face order.

    llama.cpp rotates neighbours (2j, 2j + 1), Hugging Face (j, j + head_dim / 2), so its converter
    writes row j + h * head_dim / 2 of each head to 2j + h. Only the llama architecture does this.
    """
    half = head_dim // 2
    in_head = (2 * np.arange(half)[None, :] + np.arange(2)[:, None]).reshape(-1)
    result = dict(tensors)
    for name, tensor in tensors.items():
        if name.rsplit(".", 1)[-1] in ("q", "k", "q_bias", "k_bias"):
            heads = tensor.shape[0] // head_dim
            order = (np.arange(heads)[:, None] * head_dim + in_head[None, :]).reshape(-1)
            result[name] = PermutedRows(tensor, order)
    return result
