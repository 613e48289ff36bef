"""Drafters that run a model: other bundles, early exits and cascades, from export to answer."""

from __future__ import annotations

import json
import shutil
from pathlib import Path
from subprocess import CompletedProcess

import pytest

from conftest import Sapwood, drafter_options, refused
from sapwood import _runtime
from sapwood.engine import Engine
from sapwood.errors import SapwoodError
from sapwood_export.bundle import read_manifest, verify_bundle
from sapwood_export.command import export
from test_drafters import PROMPT, answer
from tiny_models import tiny_config, tiny_weights, write_folder


@pytest.fixture(scope="module")
def other_bundle(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Another model with the tiny bundle's tokenizer: its guesses are mostly wrong."""
    folder = tmp_path_factory.mktemp("other")
    config = tiny_config("llama", num_hidden_layers=1)
    write_folder(folder / "source", config, tiny_weights(config, seed=9))
    return export(folder / "source", folder / "bundle").output


def test_a_target_that_drafts_for_itself_accepts_every_guess(exit_bundle: Path) -> None:
    engine = Engine(exit_bundle, threads=1, drafter="model", draft=exit_bundle)
    answer(engine, mode="chain", chain_length=5)
    assert engine.stats.accepted_tokens == engine.stats.drafted_tokens > 40
    assert engine.stats.drafter == "model"


def test_guesses_that_are_wrong_change_nothing(exit_bundle: Path, other_bundle: Path) -> None:
    plain = answer(Engine(exit_bundle, threads=1), mode="plain")
    engine = Engine(exit_bundle, threads=1, drafter="model", draft=other_bundle)
    for mode in ("chain", "fixed", "dynamic"):
        assert answer(engine, mode=mode) == plain
        assert engine.stats.mean_accepted_length < 2


@pytest.mark.parametrize("drafter", ["model", "early-exit", "cascade"])
def test_prompts_that_share_a_beginning_and_full_contexts_give_the_plain_text(
    exit_bundle: Path, drafter: str
) -> None:
    options = drafter_options(drafter, exit_bundle)
    engine = Engine(exit_bundle, threads=1, context_length=64, **options)
    plain = Engine(exit_bundle, threads=1, context_length=64, drafter="none")
    for prompt in (PROMPT, f"{PROMPT} d", f"{PROMPT} d e", "z y x"):
        texts = [
            "".join(each.generate(prompt, raw=True, max_new_tokens=200, mode="dynamic"))
            for each in (engine, plain)
        ]
        assert texts[0] == texts[1]
        assert engine.stats.stop_reason == plain.stats.stop_reason == "context"


def test_an_answer_that_is_given_up_leaves_the_engine_ready(exit_bundle: Path) -> None:
    engine = Engine(exit_bundle, threads=1, drafter="early-exit")
    with engine.generate(PROMPT, raw=True, max_new_tokens=100) as generation:
        next(iter(generation))
    assert answer(engine) == answer(Engine(exit_bundle, threads=1), mode="plain")


def test_an_early_exit_is_written_shown_and_used(sapwood: Sapwood, tmp_path: Path) -> None:
    config = tiny_config("llama", num_hidden_layers=3)
    source = write_folder(tmp_path / "source", config, tiny_weights(config))
    bundle = tmp_path / "bundle"
    written = sapwood("export", source, "--output", bundle, "--early-exit", "2", "--json")
    drafters = [{"kind": "early_exit", "layers": 2}]
    assert json.loads(written.stdout)["manifest"]["drafters"] == drafters
    assert json.loads(sapwood("inspect", bundle, "--json").stdout)["drafters"] == drafters
    assert "early exit after 2 of 3 layers" in sapwood("inspect", bundle).stdout
    assert verify_bundle(bundle)["drafters"] == drafters
    texts = {
        sapwood(
            *("generate", bundle, "--prompt", "a b c a b", "--raw", "--max-new-tokens", "30"),
            *("--drafter", drafter, *options),
        ).stdout
        for drafter, options in (
            ("none", ()),
            ("early-exit", ()),
            ("cascade", ("--draft", bundle)),
        )
    }
    assert len(texts) == 1
    assert texts.pop()


@pytest.mark.parametrize("layers", ["0", "2", "7", "-1"])
def test_an_early_exit_after_impossibly_many_layers_is_refused(
    sapwood: Sapwood, tiny_source: Path, tmp_path: Path, layers: str
) -> None:
    bundle = tmp_path / "bundle"
    result = sapwood("export", tiny_source, "--output", bundle, "--early-exit", layers)
    refused(result, "early exit", "give 1 to 1")
    assert list(tmp_path.iterdir()) == []


@pytest.mark.parametrize(
    "drafters",
    [
        [{"kind": "early_exit"}],
        [{"kind": "early_exit", "layers": 2}],
        [{"kind": "early_exit", "layers": True}],
        [{"kind": "early_exit", "layers": 1}, {"kind": "early_exit", "layers": 1}],
        [7],
        {"kind": 3},
    ],
)
def test_a_manifest_with_an_impossible_early_exit_is_refused_on_both_sides(
    exit_bundle: Path, tmp_path: Path, drafters: object
) -> None:
    bundle = tmp_path / "bundle"
    shutil.copytree(exit_bundle, bundle)
    manifest = read_manifest(bundle) | {"drafters": drafters}
    (bundle / "manifest.json").write_text(json.dumps(manifest))
    with pytest.raises(SapwoodError):
        verify_bundle(bundle)
    with pytest.raises(SapwoodError, match="drafters"):
        _runtime.check_bundle(str(bundle))


def test_what_a_drafter_lacks_or_cannot_use_is_said_in_one_line(
    sapwood: Sapwood, tiny_bundle: Path, exit_bundle: Path, tmp_path: Path
) -> None:
    def generate(bundle: Path, *options: str | Path) -> CompletedProcess[str]:
        return sapwood("generate", bundle, "--prompt", "a", "--raw", *options)

    refused(generate(tiny_bundle, "--drafter", "model"), "name one")
    refused(generate(tiny_bundle, "--drafter", "early-exit"), "--early-exit")
    refused(generate(tiny_bundle, "--drafter", "cascade"), "--early-exit")
    refused(generate(tiny_bundle, "--draft", exit_bundle), "runs no other bundle")
    both = generate(exit_bundle, "--drafter", "early-exit", "--draft", exit_bundle)
    refused(both, "runs no other bundle")
    missing = tmp_path / "missing"
    refused(generate(tiny_bundle, "--drafter", "model", "--draft", missing), str(missing))
    refused(generate(tiny_bundle, "--drafter", "model", "--draft", tmp_path), "manifest.json")


def test_a_draft_with_another_vocabulary_is_refused_and_one_that_only_looks_different_is_not(
    tiny_bundle: Path, tmp_path: Path
) -> None:
    config = tiny_config("gemma3")
    write_folder(tmp_path / "gemma", config, tiny_weights(config))
    larger = tiny_config("llama", vocab_size=tiny_config("llama")["vocab_size"] + 32)
    write_folder(tmp_path / "larger", larger, tiny_weights(larger))
    for name, reason in (("gemma", "token"), ("larger", "tokens and the target has")):
        draft = export(tmp_path / name, tmp_path / f"{name}-bundle").output
        with pytest.raises(SapwoodError, match=reason) as caught:
            Engine(tiny_bundle, threads=1, drafter="model", draft=draft)
        assert str(draft) in str(caught.value)
        assert "same family" in str(caught.value)

    # The same tokens in a file of other bytes.
    source = tmp_path / "respaced"
    config = tiny_config("llama")
    write_folder(source, config, tiny_weights(config))
    tokenizer = source / "tokenizer.json"
    document = json.loads(tokenizer.read_text(encoding="utf-8"))
    tokenizer.write_text(json.dumps(document, indent=3), encoding="utf-8")
    draft = export(source, tmp_path / "respaced-bundle").output
    engine = Engine(tiny_bundle, threads=1, drafter="model", draft=draft)
    answer(engine, mode="chain")
    assert engine.stats.accepted_tokens == engine.stats.drafted_tokens
