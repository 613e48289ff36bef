"""Drafts that were trained for a target, from the folder to the answer; here of random weights."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from typing import Any

import pytest

from conftest import Sapwood, refused
from sapwood import _runtime, drafting
from sapwood.engine import Engine
from sapwood.errors import SapwoodError
from sapwood.manifest import read_manifest
from test_drafters import PROMPT, answer
from tiny_drafts import write_tiny_draft


@pytest.fixture(scope="module")
def draft(tiny_bundle: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_tiny_draft(tmp_path_factory.mktemp("drafts") / "head", tiny_bundle)


def test_a_draft_alone_is_enough_to_choose_a_cascade_with_it(
    tiny_bundle: Path, draft: Path
) -> None:
    plain = answer(Engine(tiny_bundle, threads=1), mode="plain")
    engine = Engine(tiny_bundle, threads=1, draft=draft)
    assert engine.drafting.drafter == "cascade"
    assert engine.drafting.trained is not None
    for mode in ("chain", "fixed", "dynamic"):
        assert answer(engine, mode=mode) == plain
    assert engine.stats.drafter == "cascade"
    assert "cascade" in engine.stats.line()
    assert "% of the time" in engine.stats.line()


@pytest.mark.parametrize("verifier", ["rejection", "traversal"])
def test_drawn_drafts_are_drawn_from_a_trained_draft_too(
    tiny_bundle: Path, draft: Path, verifier: str
) -> None:
    engine = Engine(tiny_bundle, threads=1, drafter="head", draft=draft)
    ids = answer(engine, mode="chain", temperature=1.0, verifier=verifier)
    assert len(ids) == 60
    assert engine.stats.drafted_tokens > 60


def test_a_shipped_draft_is_found_by_its_target_and_by_nothing_else(
    tiny_bundle: Path, draft: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(drafting, "SHIPPED", tmp_path)
    assert Engine(tiny_bundle, threads=1).drafting.drafter == "mix"
    with pytest.raises(SapwoodError, match="none came with Sapwood"):
        Engine(tiny_bundle, threads=1, drafter="head")
    shutil.copytree(draft, tmp_path / "tiny")
    for chosen, found in (
        (None, "cascade"),
        ("head", "head"),
        ("cascade", "cascade"),
        ("mix", None),
    ):
        engine = Engine(tiny_bundle, threads=1, drafter=chosen)
        assert engine.drafting.folder == (tmp_path / "tiny" if found else None)
        assert engine.drafting.drafter == (found or chosen)
    manifest = read_manifest(draft)
    manifest["target"]["name"] = "another model of the same shape"
    (tmp_path / "tiny" / "manifest.json").write_text(json.dumps(manifest))
    assert Engine(tiny_bundle, threads=1).drafting.drafter == "mix"
    # Named by a person it is taken: what counts is that it fits.
    assert Engine(tiny_bundle, threads=1, draft=tmp_path / "tiny").drafting.trained is not None


def test_what_does_not_fit_is_said(
    sapwood: Sapwood, tiny_bundle: Path, exit_bundle: Path, draft: Path, tmp_path: Path
) -> None:
    def refusal(**options: Any) -> str:
        with pytest.raises(SapwoodError) as caught:
            Engine(tiny_bundle, threads=1, **options)
        return str(caught.value)

    assert "head needs a draft" in refusal(drafter="head")
    assert "runs no trained draft" in refusal(drafter="mix", draft=draft)
    assert "runs no trained draft" in refusal(drafter="model", draft=draft)
    assert "for the drafter head" in refusal(drafter="parallel-heads", draft=draft)
    assert "runs no other bundle" in refusal(drafter="head", draft=exit_bundle)
    broken = tmp_path / "broken"
    shutil.copytree(draft, broken)
    with (broken / "draft.weights").open("r+b") as file:
        file.truncate(1000)
    with pytest.raises(SapwoodError, match="export the draft again"):
        _runtime.check_draft(str(broken))
    _runtime.check_draft(str(draft))
    result = sapwood("generate", tiny_bundle, "--prompt", "a", "--raw", "--draft", broken)
    refused(result, str(broken), "export the draft again")


def test_answers_stream_from_the_command_with_a_draft(
    sapwood: Sapwood, tiny_bundle: Path, draft: Path
) -> None:
    arguments = ("generate", tiny_bundle, "--prompt", PROMPT, "--raw", "--max-new-tokens", "30")
    plain = sapwood(*arguments, "--mode", "plain")
    drafted = sapwood(*arguments, "--draft", draft, "--drafter", "head")
    assert drafted.returncode == 0, drafted.stderr
    assert drafted.stdout == plain.stdout


def test_inspect_shows_a_draft_folder(sapwood: Sapwood, draft: Path) -> None:
    report = json.loads(sapwood("inspect", draft, "--json").stdout)
    assert report["kind"] == "draft"
    assert report["draft"]["kind"] == "head"
    assert report["draft"]["subset"] == 400
    assert report["parameters"] > 10_000
    text = sapwood("inspect", draft).stdout
    for part in ("tiny-draft", "400 of 512 tokens", "layers 1, 2", "uncertainty network"):
        assert part in text, text
