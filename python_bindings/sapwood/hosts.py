"""What can run a model here: the native host, and others where their wheels are installed."""

from __future__ import annotations

import importlib.util
from collections.abc import Callable
from pathlib import Path

from sapwood import _runtime
from sapwood.errors import SapwoodError
from sapwood.options import HOSTS

OPERATORS_LIBRARY = "libsapwood_onnxruntime.so"
EXECUTORCH_OPERATORS_LIBRARY = "libsapwood_executorch.so"


def open_model(folder: Path, *, host: str, threads: int) -> _runtime.Model:
    """The bundle's target on this host. Raises SapwoodError if either is unusable."""
    if host not in HOSTS:
        raise SapwoodError(f"host: must be one of {', '.join(HOSTS)}, not {host!r}")
    if host == "native":
        return _runtime.open_native_model(str(folder), threads=threads)
    missing = HOST_STATUS[host]()
    if missing is not None:
        raise SapwoodError(f"host {host}: {missing}")
    if host == "executorch":
        return _runtime.open_executorch_model(
            str(folder),
            threads=threads,
            library=str(executorch_operators_library()),
            runtime=str(executorch_runtime()),
        )
    return _runtime.open_onnxruntime_model(
        str(folder),
        threads=threads,
        library=str(_onnxruntime_library()),
    )


def open_model_to_time(
    cost: _runtime.ModelCost, folder: Path, *, host: str, threads: int, max_rows: int = 256
) -> _runtime.Model:
    """Likewise, for ``cost`` to time: on its threads, where the host can share them.

    Two teams of threads that take turns spin beside each other, which ``cost`` would measure.
    """
    if host == "native":
        return cost.native_model(max_rows)
    return open_model(folder, host=host, threads=threads)


def onnxruntime_status() -> str | None:
    """None if ONNX Runtime can be used, else what is missing and what to do, in one line."""
    if not _runtime.built_with_onnxruntime():
        return (
            "this build has no ONNX Runtime host (its headers were not there); "
            "run scripts/run --host onnxruntime once"
        )
    if _onnxruntime_library() is None:
        return "the package onnxruntime is not installed; run: pip install 'sapwood[onnx]'"
    return None


def executorch_status() -> str | None:
    """Likewise for ExecuTorch."""
    if not executorch_operators_library().is_file():
        return (
            f"{EXECUTORCH_OPERATORS_LIBRARY}, Sapwood's operators for ExecuTorch, is not in this "
            "build (the package executorch was not there); run scripts/run --host executorch once"
        )
    if executorch_runtime() is None:
        return "the package executorch is not installed; run: pip install 'sapwood[executorch]'"
    return None


HOST_STATUS: dict[str, Callable[[], str | None]] = {
    "onnxruntime": onnxruntime_status,
    "executorch": executorch_status,
}


def operators_library() -> Path:
    """Our operators as a plug-in for any ONNX Runtime session (``register_custom_ops_library``).

    The onnxruntime host has them built in; the file is there if that host is. It lies beside the
    compiled module, which an editable install keeps apart from the sources.
    """
    return Path(_runtime.__file__).with_name(OPERATORS_LIBRARY)


def executorch_operators_library() -> Path:
    """Our operators and host for ExecuTorch; loading it registers the operators with ExecuTorch."""
    return Path(_runtime.__file__).with_name(EXECUTORCH_OPERATORS_LIBRARY)


def executorch_runtime() -> Path | None:
    """The folder of C++ libraries in the executorch wheel, found without importing the package."""
    spec = importlib.util.find_spec("executorch")
    for root in (spec.submodule_search_locations or ()) if spec else ():
        folder = Path(root) / "lib"
        if (folder / "libexecutorch.so").is_file():
            return folder
    return None


def _onnxruntime_library() -> Path | None:
    """The C library inside the onnxruntime wheel, found without importing the package."""
    spec = importlib.util.find_spec("onnxruntime")
    for root in (spec.submodule_search_locations or ()) if spec else ():
        for pattern in ("libonnxruntime.so*", "onnxruntime_pybind11_state*.so"):
            found = sorted((Path(root) / "capi").glob(pattern))
            if found:
                return found[0]
    return None
