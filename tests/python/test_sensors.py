"""Heat, power and memory as Linux shows them."""

from __future__ import annotations

from pathlib import Path

import pytest

from sapwood.sensors import celsius, memory_used, watts


def zone(folder: Path, text: str) -> None:
    folder.mkdir()
    (folder / "temp").write_text(text)


def supply(folder: Path, **files: str) -> None:
    folder.mkdir()
    for name, text in files.items():
        (folder / name).write_text(text + "\n")


def test_the_temperature_is_the_hottest_zones(tmp_path: Path) -> None:
    assert celsius(tmp_path) is None
    for number, text in enumerate(["41000\n", "52500\n", "off\n"]):
        zone(tmp_path / f"thermal_zone{number}", text)
    assert celsius(tmp_path) == 52.5


def test_power_is_what_batteries_give_while_they_are_discharged(tmp_path: Path) -> None:
    assert watts(tmp_path) is None
    supply(tmp_path / "AC", type="Mains", online="1")
    supply(tmp_path / "BAT0", status="Charging", power_now="9000000")
    assert watts(tmp_path) is None
    supply(tmp_path / "BAT1", status="Discharging", power_now="3500000")
    assert watts(tmp_path) == pytest.approx(3.5)
    # Some give a current, which may be negative while discharging.
    supply(tmp_path / "BAT2", status="Discharging", current_now="-500000", voltage_now="4000000")
    assert watts(tmp_path) == pytest.approx(5.5)
    supply(tmp_path / "BAT3", status="Discharging", current_now="bad")
    assert watts(tmp_path) == pytest.approx(5.5)


def test_memory_that_others_could_have_is_not_taken(tmp_path: Path) -> None:
    meminfo = tmp_path / "meminfo"
    assert memory_used(meminfo) is None
    meminfo.write_text("MemTotal: 8000 kB\nMemFree: 100 kB\nMemAvailable: 2000 kB\nHugePages: 0\n")
    assert memory_used(meminfo) == pytest.approx(0.75)
    meminfo.write_text("MemTotal: 8000 kB\nMemFree: 100 kB\n")
    assert memory_used(meminfo) is None
