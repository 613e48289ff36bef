"""``sapwood doctor``: what this machine can do, what is missing, and what to do about it."""

from __future__ import annotations

import os
import platform
import shutil
import sys
from importlib import metadata
from pathlib import Path
from typing import Any

from rich.table import Table

from sapwood.cli.common import JsonOption, human_bytes, output_console, print_json

EXAMPLE = "Example:  sapwood doctor --json"

# Instruction-set flags that some kernel asks for, as the kernel names them in /proc/cpuinfo.
_FEATURES = (
    "avx2",
    "fma",
    "f16c",
    "avx_vnni",
    "avx512f",
    "avx512bw",
    "avx512_vnni",
    "amx_int8",
    "asimd",
    "asimddp",
    "i8mm",
)
_FORMATS = ("int4_g32", "int4_g32_min", "int4_g128", "int4_g128_min", "int8_g32")
_PACKAGES = (
    "numpy",
    "tokenizers",
    "jinja2",
    "gguf",
    "safetensors",
    "onnxruntime",
    "onnx",
    "executorch",
    "torch",
)


def doctor(as_json: JsonOption = False) -> None:
    """Report processor, kernels, memory, hosts, versions, and what to do about what is missing."""
    report = examine()
    if as_json:
        print_json(report)
    else:
        _print(report)


def examine() -> dict[str, Any]:
    """The object that ``--json`` prints. ``problems`` is a list of sentences; empty is well."""
    from sapwood import __version__
    from sapwood.options import default_threads
    from sapwood.paths import default_bundle

    problems: list[str] = []
    bundle = default_bundle()
    if not bundle.is_dir():
        problems.append(f"There is no default bundle at {bundle}: run scripts/run once.")
    hosts = _hosts(problems)
    free = shutil.disk_usage(_existing_parent(bundle)).free
    return {
        "sapwood": __version__,
        "python": platform.python_version(),
        "system": f"{platform.system()} {platform.machine()}",
        "cpu": _cpu(),
        "threads": default_threads(),
        "kernels": _kernels(problems),
        "memory": _memory(problems),
        "shared_memory": _shared_memory(),
        "disk_free_bytes": free,
        "hosts": hosts,
        "default_bundle": {"path": str(bundle), "present": bundle.is_dir()},
        "packages": {name: _version(name) for name in _PACKAGES},
        "problems": problems,
    }


def _cpu() -> dict[str, Any]:
    fields: dict[str, str] = {}
    try:
        for line in Path("/proc/cpuinfo").read_text().splitlines():
            key, _, value = line.partition(":")
            fields.setdefault(key.strip(), value.strip())
    except OSError:
        pass
    flags = set((fields.get("flags") or fields.get("Features") or "").split())
    return {
        "model": fields.get("model name", platform.processor() or platform.machine()),
        "cores": os.cpu_count(),
        "features": [name for name in _FEATURES if name in flags],
    }


def _kernels(problems: list[str]) -> dict[str, Any]:
    try:
        from sapwood import _runtime
    except ImportError as error:
        problems.append(f"The compiled module cannot be loaded ({error}): run scripts/run again.")
        return {"chosen": None, "runnable": [], "row_plans": {}}
    runnable = _runtime.runnable_kernels()
    if runnable == ["scalar"]:
        problems.append(
            "Only the scalar kernels run on this processor; they are correct and slow. "
            "An x86-64 with AVX2 or a 64-bit Arm with dot products does better."
        )
    chosen = _runtime.active_kernels()
    table = _runtime.kernels(chosen)
    plans = {name: table.row_plan(name) for name in _FORMATS}
    return {"chosen": chosen, "runnable": runnable, "row_plans": plans}


def _memory(problems: list[str]) -> dict[str, int]:
    page = os.sysconf("SC_PAGE_SIZE")
    total = page * os.sysconf("SC_PHYS_PAGES")
    available = page * os.sysconf("SC_AVPHYS_PAGES")
    try:
        for line in Path("/proc/meminfo").read_text().splitlines():
            if line.startswith("MemAvailable:"):
                available = int(line.split()[1]) * 1024
    except (OSError, ValueError, IndexError):
        pass
    if available < 512 << 20:
        problems.append("Less than 512 MiB of memory is available: close something first.")
    return {"total_bytes": total, "available_bytes": available}


def _shared_memory() -> dict[str, Any]:
    """What memory can be shared with other processes and devices; ``chosen`` is the best."""
    try:
        from sapwood import _runtime
    except ImportError:
        return {"chosen": None, "kinds": {}}  # _kernels has said it
    kinds = dict(_runtime.memory_kinds())
    chosen = next(name for name, missing in kinds.items() if missing is None)
    return {"chosen": chosen, "kinds": kinds}


def _hosts(problems: list[str]) -> dict[str, dict[str, Any]]:
    from sapwood.hosts import HOST_STATUS

    hosts: dict[str, dict[str, Any]] = {"native": {"available": True, "reason": None}}
    for name, status in HOST_STATUS.items():
        missing = status()
        if missing is not None:
            problems.append(f"The {name} host is not available: {missing}")
        hosts[name] = {"available": missing is None, "reason": missing}
    return hosts


def _version(package: str) -> str | None:
    try:
        return metadata.version(package)
    except metadata.PackageNotFoundError:
        return None


def _existing_parent(path: Path) -> Path:
    while not path.exists():
        path = path.parent
    return path


def _by_plan(plans: dict[str, list[int]]) -> dict[str, list[str]]:
    """Formats whose rows are taken alike, by how."""
    names: dict[str, list[str]] = {}
    for name, plan in plans.items():
        text = ", ".join(_blocks(plan, rows) for rows in (4, 6, 8, 12, 16))
        names.setdefault(text, []).append(name)
    return names


def _blocks(plan: list[int], rows: int) -> str:
    """How a linear layer takes so many rows: ``12 as 8+4``."""
    blocks, left = [], rows
    while left:
        blocks.append(plan[left - 1])
        left -= blocks[-1]
    return f"{rows} as {'+'.join(map(str, blocks))}"


def _print(report: dict[str, Any]) -> None:
    console = output_console()
    cpu, memory = report["cpu"], report["memory"]
    table = Table(show_header=False, box=None, padding=(0, 2, 0, 0))
    table.add_row(
        "sapwood", f"{report['sapwood']} on Python {report['python']}, {report['system']}"
    )
    table.add_row("processor", f"{cpu['model']}, {cpu['cores']} cores")
    table.add_row("features", " ".join(cpu["features"]) or "none that a kernel uses")
    kernels = report["kernels"]
    others = [name for name in kernels["runnable"] if name != kernels["chosen"]]
    table.add_row("kernels", f"{kernels['chosen']} (also {', '.join(others) or 'none'})")
    for plan, names in _by_plan(kernels["row_plans"]).items():
        table.add_row("row blocks", f"{plan} ({', '.join(names)})")
    table.add_row(
        "memory",
        f"{human_bytes(memory['available_bytes'])} available of "
        f"{human_bytes(memory['total_bytes'])}",
    )
    shared = report["shared_memory"]
    absent = [name for name, missing in shared["kinds"].items() if missing is not None]
    table.add_row("shared memory", f"{shared['chosen']} (not here: {', '.join(absent) or 'none'})")
    table.add_row("disk", f"{human_bytes(report['disk_free_bytes'])} free")
    for name, host in report["hosts"].items():
        table.add_row(f"host {name}", "available" if host["available"] else "not available")
    bundle = report["default_bundle"]
    table.add_row("bundle", bundle["path"] + ("" if bundle["present"] else " (not made yet)"))
    versions = (f"{name} {version or '-'}" for name, version in report["packages"].items())
    table.add_row("packages", ", ".join(versions))
    console.print(table)
    for problem in report["problems"]:
        console.print(f"! {problem}", style="yellow", markup=False, soft_wrap=True)
    if not report["problems"]:
        console.print("nothing is missing", style="green")
    sys.stdout.flush()
