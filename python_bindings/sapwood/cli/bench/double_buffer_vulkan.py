"""``sapwood bench double-buffer --vulkan``: one Vulkan device drafts while another one verifies."""

from __future__ import annotations

import os
from statistics import median
from typing import TYPE_CHECKING, Any

from rich.table import Table

from sapwood.cli.common import measuring, output_console
from sapwood.errors import SapwoodError

if TYPE_CHECKING:
    from sapwood._runtime import DoubleBufferCost, VulkanDevice

STEPS = 30
TARGET_SIZE = 1 << 20  # numbers that a pass adds
DRAFT_SIZE = TARGET_SIZE // 4
SURPRISE_EVERY = 3  # two of three outcomes are foreseen, about as many as a trained draft's

_WAYS = {"in turns": False, "ahead": True}


def measure(repeats: int) -> dict[str, Any]:
    """Both devices in both roles, in turns and ahead, interleaved; medians over the repeats."""
    from sapwood import _runtime

    devices = _open_devices()
    roles = (devices, devices[::-1])
    turns = [(turn, role, way) for turn in range(repeats + 1) for role in (0, 1) for way in _WAYS]
    costs: dict[tuple[int, str], list[DoubleBufferCost]] = {}
    for turn, role, way in measuring(turns, lambda each: each[2]):
        cost = _runtime.vulkan_double_buffer(
            *roles[role],
            steps=STEPS,
            target_size=TARGET_SIZE,
            draft_size=DRAFT_SIZE,
            surprise_every=SURPRISE_EVERY,
            ahead=_WAYS[way],
        )
        if turn > 0:  # the first warms up
            costs.setdefault((role, way), []).append(cost)
    if not all(cost.right for found in costs.values() for cost in found):
        raise SapwoodError("double-buffer: the devices came to another state, which is a bug")
    results = []
    for (role, way), found in costs.items():
        draft, target = (device.name for device in roles[role])
        results.append({"drafts": draft, "verifies": target, "way": way, **_figures(found)})
    return {
        "devices": [device.name for device in devices],
        "steps": STEPS,
        "target_size": TARGET_SIZE,
        "draft_size": DRAFT_SIZE,
        "repeats": repeats,
        "results": results,
    }


def _open_devices() -> tuple[VulkanDevice, VulkanDevice]:
    """The first device and the last; a driver that is alone gives two logical ones.

    Drivers that compute on the processor make their threads here, and they stay on the cores that
    this thread has: those of the one on the last core, those of the other on all the rest.
    """
    from sapwood import _runtime

    count = len(_runtime.vulkan_device_names())
    cores = sorted(os.sched_getaffinity(0))
    opened: list[VulkanDevice] = []
    reasons: list[str] = []
    try:
        for index in [*range(count), *reversed(range(count))]:
            if len(opened) == 2:
                break
            os.sched_setaffinity(0, cores[-1:] if not opened else cores[:-1] or cores)
            try:
                opened.append(_runtime.VulkanDevice.open(index))
            except SapwoodError as error:
                reasons.append(str(error))
    finally:
        os.sched_setaffinity(0, cores)
    if len(opened) < 2:
        why = "; ".join(dict.fromkeys(reasons)) or "the loader finds none"
        raise SapwoodError(
            f"double-buffer: no Vulkan device that the runtime can use: {why}; install a driver "
            "(Debian: mesa-vulkan-drivers)"
        )
    return opened[0], opened[1]


def _figures(costs: list[DoubleBufferCost]) -> dict[str, Any]:
    return {
        "step_milliseconds": median(cost.step_ms for cost in costs),
        "draft_milliseconds": median(cost.draft_ms for cost in costs),
        "draft_milliseconds_waited": median(cost.draft_ms_waited for cost in costs),
        "kept_ahead": sum(cost.kept for cost in costs),
        "discarded_ahead": sum(cost.discarded for cost in costs),
        "hidden_draft_share": median(cost.hidden_draft_share(STEPS) for cost in costs),
    }


def show(report: dict[str, Any]) -> None:
    table = Table(title=f"additions of {report['target_size']:,} numbers, {report['steps']} steps")
    for column in ("drafts", "verifies", "draft"):
        table.add_column(column)
    for column in ("ms a step", "ms a draft", "ms waited", "kept", "hidden"):
        table.add_column(column, justify="right")
    for result in report["results"]:
        ahead = result["kept_ahead"] + result["discarded_ahead"]
        table.add_row(
            result["drafts"].partition(" (")[0],  # without the driver's version
            result["verifies"].partition(" (")[0],
            result["way"],
            f"{result['step_milliseconds']:.2f}",
            f"{result['draft_milliseconds']:.2f}",
            f"{result['draft_milliseconds_waited']:.2f}",
            f"{result['kept_ahead'] / ahead:.0%}" if ahead else "",
            f"{result['hidden_draft_share']:.0%}",
        )
    output_console().print(table)
