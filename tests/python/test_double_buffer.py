"""Drafting on threads of its own, and the watchdog, as far as Python shows them."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest

from conftest import Sapwood, refused
from sapwood import _runtime
from sapwood.engine import Engine
from sapwood.errors import SapwoodError
from test_drafters import PROMPT, answer
from tiny_drafts import write_tiny_draft


@pytest.fixture(scope="module")
def draft(tiny_bundle: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny_draft(tmp_path_factory.mktemp("drafts") / "head", tiny_bundle)


@pytest.mark.parametrize("double_buffer", ["measured", "on", "off"])
def test_drafting_beside_the_target_changes_no_token(
    tiny_bundle: Path, draft: Path, double_buffer: str
) -> None:
    plain = answer(Engine(tiny_bundle, threads=1), mode="plain")
    engine = Engine(
        tiny_bundle, threads=1, draft=draft, draft_threads=2, double_buffer=double_buffer
    )
    for mode in ("chain", "fixed", "dynamic"):
        assert answer(engine, mode=mode) == plain
    assert 0 <= engine.stats.hidden_draft_share <= 1
    assert (engine.stats.missed_deadlines, engine.stats.watchdog) == (0, "")


def test_what_a_deadline_and_a_double_buffer_may_be_is_said_in_a_line(
    tiny_bundle: Path,
) -> None:
    model = _runtime.open_native_model(str(tiny_bundle), threads=1)
    with pytest.raises(SapwoodError, match="deadline cannot be shorter than 0"):
        _runtime.Session.create(model, context_length=64, least_deadline=-1)
    with pytest.raises(SapwoodError, match="must be measured, on or off"):
        _runtime.Session.create(model, context_length=64, double_buffer="perhaps")
    session = _runtime.Session.create(model, context_length=64, least_deadline=0)
    session.start([1, 2, 3], max_new_tokens=5)
    while session.step():
        pass
    assert session.stats.missed_deadlines == 0


def test_a_draft_that_is_late_is_reported_and_changes_no_token(tiny_bundle: Path) -> None:
    """No stage is as fast as a deadline of a nanosecond: every step misses, and all goes on."""
    plain = answer(Engine(tiny_bundle, threads=1), mode="plain")
    engine = Engine(tiny_bundle, threads=1, drafter="mix")
    engine.session = _runtime.Session.create(
        engine.model, context_length=engine.context_length, drafter="mix", least_deadline=1e-12
    )
    assert answer(engine, mode="dynamic") == plain
    assert engine.stats.missed_deadlines > 0
    assert engine.stats.watchdog.endswith("for a while")
    assert engine.stats.watchdog in engine.stats.line()
    assert engine.stats.as_dict()["watchdog"] == engine.stats.watchdog


@pytest.mark.skipif(len(os.sched_getaffinity(0)) < 2, reason="needs two cores")
def test_bench_double_buffer_compares_the_ways(
    sapwood: Sapwood, tiny_bundle: Path, draft: Path
) -> None:
    command = ["bench", "double-buffer", str(tiny_bundle), "--draft", str(draft)]
    result = sapwood(*command, "--repeats", "1", "--max-new-tokens", "12", "-p", PROMPT, "--json")
    report = json.loads(result.stdout)
    assert report["equal_tokens"]
    assert report["drafter"] == "cascade"
    assert set(report["ways"]) == {"in turns", "beside", "ahead", "measured"}
    assert report["ways"]["in turns"]["hidden_draft_share"] == 0
    assert report["ways"]["ahead"]["kept_ahead"] >= 0
    for way in ("in turns", "beside", "ahead"):
        assert set(report["ways"][way]["steps_by_way"]) == {way}
    assert sum(report["ways"]["measured"]["steps_by_way"].values()) > 0
    for figures in report["ways"].values():
        assert figures["tokens_per_second"] > 0
    refused(sapwood(*command[:3], "--drafter", "mix"), "the drafter mix runs no network")


def test_bench_double_buffer_orders_two_vulkan_devices(
    sapwood: Sapwood, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every driver of the machine, and the second one that Debian ships inside its browser."""
    swiftshader = Path("/usr/lib/chromium/vk_swiftshader_icd.json")
    if swiftshader.is_file():
        monkeypatch.setenv("VK_ADD_DRIVER_FILES", str(swiftshader))
    try:
        names = _runtime.vulkan_device_names()
    except SapwoodError as error:
        pytest.skip(str(error))
    if not names:
        pytest.skip("no Vulkan device on this machine")
    report = json.loads(
        sapwood("bench", "double-buffer", "--vulkan", "--repeats", "1", "--json").stdout
    )
    assert set(report["devices"]) <= set(names)
    assert {each["way"] for each in report["results"]} == {"in turns", "ahead"}
    for each in report["results"]:
        ahead = each["way"] == "ahead"
        assert each["kept_ahead"] == (20 if ahead else 0)
        assert (each["hidden_draft_share"] > 0) == ahead
        assert each["draft_milliseconds"] > 0


def test_bench_double_buffer_without_a_vulkan_device_says_so(
    sapwood: Sapwood, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("VK_DRIVER_FILES", str(tmp_path / "none.json"))
    monkeypatch.setenv("VK_ICD_FILENAMES", str(tmp_path / "none.json"))
    refused(sapwood("bench", "double-buffer", "--vulkan"), "Vulkan")
    refused(sapwood("bench", "double-buffer", str(tmp_path), "--vulkan"), "runs no model")


def test_timelines_of_a_device_are_those_of_the_processor() -> None:
    timelines: list[_runtime.Timeline] = [_runtime.HostTimeline(2)]
    try:
        device = _runtime.VulkanDevice.open(0)
        timelines.append(_runtime.VulkanTimeline.create(device, 2))
    except SapwoodError as error:
        print(f"without a Vulkan device: {error}")
    except AttributeError:
        print("this build is without Vulkan")
    for timeline in timelines:
        assert timeline.wait(2) == "reached"
        assert timeline.wait(3, timeout=0.01) == "missed"
        timeline.signal(5)
        assert timeline.value == 5
        with pytest.raises(SapwoodError, match="values only rise"):
            timeline.signal(5)
        timeline.abandon()
        assert timeline.wait(9) == "abandoned"
