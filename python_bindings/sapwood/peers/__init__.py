"""Other runtimes that ``sapwood bench suite --peers`` puts beside ours, on the same weights."""

from __future__ import annotations

import importlib.util
from dataclasses import dataclass
from pathlib import Path

_HERE = Path(__file__).parent


@dataclass(frozen=True)
class Peer:
    """``program``: runs in a process of its own and answers ``PeerProcess``; None: what is said in
    ``differs`` keeps it from being measured. ``module``: is there where ``package`` is installed.
    """

    name: str
    package: str
    module: str
    program: Path | None
    differs: str

    @property
    def installed(self) -> bool:
        return importlib.util.find_spec(self.module) is not None


LLAMA_CPP = Peer(
    "llama.cpp",
    "llama-cpp-python",
    "llama_cpp",
    _HERE / "run_llama_cpp.py",
    "reads the same file, as its package was built (scripts/compare_llama_cpp builds it for this "
    "processor); a pass over one row for every token, with its own rounding of activations",
)
PEERS = (
    LLAMA_CPP,
    Peer(
        "OpenVINO GenAI",
        "openvino-genai",
        "openvino_genai",
        _HERE / "run_openvino_genai.py",
        "reads the same file into a format of its own, which does not hold every weight as it was: "
        "its text is another even in 32-bit arithmetic; the time is what it says a token takes "
        "after the first",
    ),
    Peer(
        "ONNX Runtime GenAI",
        "onnxruntime-genai",
        "onnxruntime_genai",
        None,
        "runs folders of its own model builder, which quantises anew: other weights, so it is not "
        "measured",
    ),
)
