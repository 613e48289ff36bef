"""The machine's heat, power and memory, where Linux shows them; on a phone the app asks Android."""

from __future__ import annotations

from pathlib import Path

_THERMAL = Path("/sys/class/thermal")
_POWER = Path("/sys/class/power_supply")
_MEMORY = Path("/proc/meminfo")


def celsius(zones: Path = _THERMAL) -> float | None:
    """Of the hottest thermal zone; None where there is none that can be read."""
    found = [_number(file) for file in sorted(zones.glob("thermal_zone*/temp"))]
    return max((value / 1000 for value in found if value is not None), default=None)


def watts(supplies: Path = _POWER) -> float | None:
    """What batteries that are being discharged give; None where there is none."""
    total = None
    for supply in sorted(supplies.glob("*")):
        if _text(supply / "status") != "Discharging":
            continue
        power = _number(supply / "power_now")  # microwatts
        if power is None:
            current, voltage = _number(supply / "current_now"), _number(supply / "voltage_now")
            if current is None or voltage is None:
                continue
            power = abs(current) * voltage / 1e6
        total = (total or 0.0) + abs(power) / 1e6
    return total


def memory_used(meminfo: Path = _MEMORY) -> float | None:
    """The share of the memory that no process could have without others giving some up."""
    lines = (line.split() for line in (_text(meminfo) or "").splitlines())
    kilobytes = {words[0]: words[1] for words in lines if len(words) > 1}
    try:
        total, free = float(kilobytes["MemTotal:"]), float(kilobytes["MemAvailable:"])
    except (KeyError, ValueError):
        return None
    return min(max(1 - free / total, 0.0), 1.0) if total > 0 else None


def _text(file: Path) -> str | None:
    try:
        return file.read_text().strip()
    except OSError:  # not there, or switched off
        return None


def _number(file: Path) -> float | None:
    try:
        return float(_text(file) or "")
    except ValueError:
        return None
