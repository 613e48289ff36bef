"""Model files, behind one interface."""

from __future__ import annotations

from pathlib import Path

from sapwood.errors import SapwoodError
from sapwood_export.sources.base import ModelSource

__all__ = ["ModelSource", "open_source"]


def open_source(path: Path) -> ModelSource:
    """Opens a Hugging Face folder, a GGUF file or any shard of one, or a folder with one GGUF."""
    from sapwood_export.sources.gguf_source import find_shards, open_gguf
    from sapwood_export.sources.huggingface import open_folder

    if path.is_file():
        if path.suffix == ".safetensors":
            raise SapwoodError(
                f"{path}: give the folder that holds it with config.json and the tokenizer"
            )
        return open_gguf(path)
    if not path.is_dir():
        raise SapwoodError(f"{path}: no such file or folder")
    if (path / "config.json").is_file():
        return open_folder(path)
    models = {find_shards(file)[0] for file in path.glob("*.gguf")}
    if not models:
        raise SapwoodError(
            f"{path}: neither config.json nor a .gguf file is in this folder; "
            "give a Hugging Face model folder or a GGUF file"
        )
    if len(models) > 1:
        names = ", ".join(sorted(model.name for model in models))
        raise SapwoodError(f"{path}: several models are in this folder ({names}); name one")
    return open_gguf(models.pop())
