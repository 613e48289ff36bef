"""The Gradle project, as far as it can be checked where Google's plug-in cannot be had.

Nobody here runs Gradle, so what it names is compared with what is there: folders, plug-ins,
versions, paths, CMake's options and targets, and the numbers that scripts/build_apk uses.
"""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from conftest import REPOSITORY

PROJECT = REPOSITORY / "android_app"
CATALOGUE = PROJECT / "gradle" / "libs.versions.toml"
MODULES = ("app", "library")


def build_file(module: str) -> str:
    return (PROJECT / module / "build.gradle.kts").read_text()


def section(name: str) -> dict[str, str]:
    """A table of the version catalogue: names and what follows the equals sign."""
    body = re.search(rf"^\[{name}\]\n(.*?)(?=^\[|\Z)", CATALOGUE.read_text(), re.M | re.S)
    assert body is not None
    return dict(re.findall(r"^([\w-]+) = (.+)$", body.group(1), re.M))


def test_every_module_is_included_and_has_its_sources() -> None:
    settings = (PROJECT / "settings.gradle.kts").read_text()
    assert sorted(re.findall(r'":(\w+)"', settings)) == sorted(MODULES)
    for module in MODULES:
        assert (PROJECT / module / "src" / "main" / "AndroidManifest.xml").is_file()
        assert list((PROJECT / module / "src" / "main" / "java").rglob("*.java"))
        for other in re.findall(r'project\(":(\w+)"\)', build_file(module)):
            assert other in MODULES


def test_the_version_catalogue_holds_what_the_modules_name() -> None:
    versions, plugins = section("versions"), section("plugins")
    for reference in re.findall(r'version\.ref = "(\w+)"', CATALOGUE.read_text()):
        assert reference in versions
    for script in PROJECT.rglob("*.gradle.kts"):
        for plugin in re.findall(r"alias\(libs\.plugins\.([\w.]+)\)", script.read_text()):
            assert plugin.replace(".", "-") in plugins, script
        for version in re.findall(r"libs\.versions\.(\w+)", script.read_text()):
            assert version in versions, script


@pytest.mark.parametrize("module", MODULES)
def test_every_path_that_is_named_is_there(module: str) -> None:
    made = {"../../build/engine-arm64-musl/libsapwood_engine.so"}  # by scripts/build_engine
    for path in re.findall(r'"(\.\./[^"]+)"', build_file(module)):
        assert path in made or (PROJECT / module / path).exists(), path
    assert (
        "engine-arm64-musl/libsapwood_engine.so"
        in (REPOSITORY / "scripts" / "build_engine").read_text()
    )


def test_cmake_knows_its_options_and_its_target() -> None:
    cmake = "".join(
        path.read_text()
        for path in (REPOSITORY / "CMakeLists.txt", PROJECT / "library/src/main/cpp/CMakeLists.txt")
    )
    for option in re.findall(r"-D(SAPWOOD_\w+)", build_file("library")):
        assert option in cmake, option
    (target,) = re.findall(r'targets \+= "(\w+)"', build_file("library"))
    assert f"add_library({target} SHARED" in cmake


def test_both_ways_of_building_make_the_same_package() -> None:
    script = (REPOSITORY / "scripts" / "android.sh").read_text()

    def said(name: str) -> str:
        found = re.search(rf"^{name}=(.+)$", script, re.M)
        assert found is not None
        return found.group(1)

    versions = section("versions")
    assert versions["minSdk"].strip('"') == said("min_sdk")
    assert versions["targetSdk"].strip('"') == said("target_sdk")
    assert f'applicationId = "{said("application_id")}"' in build_file("app")
    presets = (REPOSITORY / "CMakePresets.json").read_text()
    assert f'"ANDROID_PLATFORM": "android-{said("min_sdk")}"' in presets
    for flag in ("ANDROID_STL", "ANDROID_SUPPORT_FLEXIBLE_PAGE_SIZES"):
        (value,) = re.findall(rf"-D{flag}=(\S+)\"", build_file("library"))
        assert f'"{flag}": "{value}"' in presets


def test_the_manual_says_that_nobody_has_run_it() -> None:
    assert "This has not been run" in Path(REPOSITORY / "docs" / "android.md").read_text()
