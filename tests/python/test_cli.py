"""The sapwood command where it works: output, JSON, pipes."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from pathlib import Path

import pytest

from conftest import Sapwood

COMMANDS = ("export", "generate", "chat", "inspect", "doctor", "bench")
SHORT = ("--max-new-tokens", "12", "--threads", "1")


@pytest.mark.parametrize("command", COMMANDS)
def test_help_shows_a_worked_example(sapwood: Sapwood, command: str) -> None:
    result = sapwood(command, "--help")
    assert result.returncode == 0
    assert "Example:" in result.stdout
    assert f"sapwood {command}" in result.stdout
    assert result.stderr == ""


def test_help_lists_every_command(sapwood: Sapwood) -> None:
    result = sapwood("--help")
    assert result.returncode == 0
    for command in COMMANDS:
        assert command in result.stdout


def test_the_version_is_printed(sapwood: Sapwood) -> None:
    assert sapwood("--version").stdout == "sapwood 0.1.0\n"


def test_generate_streams_the_answer_and_keeps_statistics_apart(
    sapwood: Sapwood, smollm2: Path
) -> None:
    result = sapwood("generate", smollm2, "--prompt", "Say hello.", *SHORT)
    assert result.returncode == 0, result.stderr
    assert result.stdout.strip()
    assert "tokens/s" in result.stderr
    assert "tokens/s" not in result.stdout


def test_generate_json_has_the_promised_fields(sapwood: Sapwood, smollm2: Path) -> None:
    result = sapwood(
        "generate", smollm2, "--prompt", "Say hello.", "--mode", "chain", "--json", *SHORT
    )
    assert result.returncode == 0, result.stderr
    document = json.loads(result.stdout)
    assert result.stdout.count("\n") == 1
    assert isinstance(document["text"], str)
    assert all(isinstance(token, int) for token in document["token_ids"])
    stats = document["stats"]
    assert stats["tokens_per_second"] > 0
    assert stats["prompt_tokens_per_second"] > 0
    assert stats["steps"] >= 1
    assert stats["mean_accepted_length"] >= 1
    assert (stats["mode"], stats["host"]) == ("chain", "native")
    assert stats["emitted_tokens"] == len(document["token_ids"])


def test_generate_reads_its_prompt_from_a_pipe(sapwood: Sapwood, smollm2: Path) -> None:
    piped = sapwood("generate", smollm2, "--json", *SHORT, stdin="Say hello.\n")
    named = sapwood("generate", smollm2, "--json", *SHORT, "--prompt", "Say hello.")
    assert json.loads(piped.stdout)["token_ids"] == json.loads(named.stdout)["token_ids"]


def test_every_sampling_option_reaches_the_runtime(sapwood: Sapwood, smollm2: Path) -> None:
    base = ("generate", smollm2, "--prompt", "Invent a word.", "--json", *SHORT)
    greedy = json.loads(sapwood(*base).stdout)["token_ids"]
    hot = ("--temperature", "1.5", "--seed", "11")
    sampled = json.loads(sapwood(*base, *hot).stdout)["token_ids"]
    assert sampled != greedy
    for narrow in (("--top-k", "1"), ("--top-p", "0.0001"), ("--min-p", "1.0")):
        assert json.loads(sapwood(*base, *hot, *narrow).stdout)["token_ids"] == greedy
    penalised = sapwood(*base, "--repetition-penalty", "5.0")
    assert json.loads(penalised.stdout)["token_ids"] != greedy


def test_generate_ends_before_a_stop_string(sapwood: Sapwood, smollm2: Path) -> None:
    base = ("generate", smollm2, "--prompt", "Say hello.", "--json", *SHORT)
    text = json.loads(sapwood(*base).stdout)["text"]
    document = json.loads(sapwood(*base, "--stop", text[4:8], "--stop", "zzzz").stdout)
    assert document["text"] == text[: text.index(text[4:8])]
    assert document["stop_reason"] == "stop"


def test_the_default_bundle_is_used_when_none_is_named(
    sapwood: Sapwood, smollm2: Path, tmp_path: Path
) -> None:
    (tmp_path / "sapwood" / "bundles").mkdir(parents=True)
    (tmp_path / "sapwood" / "bundles" / "smollm2-135m-instruct").symlink_to(smollm2)
    result = sapwood(
        "generate", "--prompt", "Hi", *SHORT, environment={"XDG_CACHE_HOME": str(tmp_path)}
    )
    assert result.returncode == 0, result.stderr


def test_a_reader_that_leaves_ends_generate_quietly(smollm2: Path) -> None:
    command = [sys.executable, "-m", "sapwood", "generate", str(smollm2), "--max-new-tokens", "200"]
    process = subprocess.Popen(
        [*command, "--prompt", "Write a long story."],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
    )
    assert process.stdout is not None
    assert process.stderr is not None
    process.stdout.read(1)
    process.stdout.close()
    assert process.stderr.read() == ""
    assert process.wait(60) == 141
    process.stderr.close()


def test_chat_answers_each_line_and_remembers(sapwood: Sapwood, smollm2: Path) -> None:
    result = sapwood(
        "chat", smollm2, "--json", *SHORT, stdin="My name is Ida.\n\nWhat is my name?\n/clear\nHi\n"
    )
    assert result.returncode == 0, result.stderr
    answers = [json.loads(line) for line in result.stdout.splitlines()]
    assert len(answers) == 3
    assert answers[1]["stats"]["reused_prompt_tokens"] > 0
    assert answers[1]["stats"]["prompt_tokens"] > answers[2]["stats"]["prompt_tokens"]


def test_chat_ends_on_quit(sapwood: Sapwood, tiny_bundle: Path) -> None:
    result = sapwood("chat", tiny_bundle, *SHORT, stdin="/quit\nnot read\n")
    assert (result.returncode, result.stdout) == (0, "")


def test_inspect_says_what_a_bundle_holds(sapwood: Sapwood, tiny_bundle: Path) -> None:
    document = json.loads(sapwood("inspect", tiny_bundle, "--json").stdout)
    assert document["spec"]["family"] == "llama"
    assert document["schema_version"] == 1
    assert {entry["name"] for entry in document["files"]} >= {"target.weights", "tokenizer.json"}
    manifest = json.loads((tiny_bundle / "manifest.json").read_text())
    tensors = manifest["target"]["tensors"].values()
    by_format = document["formats"]
    assert sum(entry["tensors"] for entry in by_format.values()) == len(tensors)
    assert sum(entry["bytes"] for entry in by_format.values()) == sum(t["bytes"] for t in tensors)
    kv = document["kv_bytes_per_token"]
    assert (
        kv["float16"]
        == 4
        * document["spec"]["layers"]
        * document["spec"]["kv_heads"]
        * (document["spec"]["head_dim"])
    )
    assert kv["float16"] / 2 < kv["int8"] < kv["float16"]
    shown = sapwood("inspect", tiny_bundle).stdout
    for word in ("llama", "target.weights", "checksums", "a token in int8", *by_format):
        assert word in shown


def test_doctor_reports_kernels_hosts_and_what_is_missing(sapwood: Sapwood, tmp_path: Path) -> None:
    away = {"XDG_CACHE_HOME": str(tmp_path)}
    document = json.loads(sapwood("doctor", "--json", environment=away).stdout)
    assert document["kernels"]["chosen"] in document["kernels"]["runnable"]
    assert document["kernels"]["runnable"][0] == "scalar"
    assert document["hosts"]["native"]["available"]
    assert document["memory"]["available_bytes"] > 0
    assert document["shared_memory"]["kinds"][document["shared_memory"]["chosen"]] is None
    assert document["threads"] == len(os.sched_getaffinity(0))
    assert any("scripts/run" in problem for problem in document["problems"])
    shown = sapwood("doctor", environment=away)
    assert shown.returncode == 0
    assert document["kernels"]["chosen"] in shown.stdout
    shared = f"shared memory {document['shared_memory']['chosen']}"
    assert shared in " ".join(shown.stdout.split())


def test_doctor_shows_the_kernels_that_the_environment_asks_for(sapwood: Sapwood) -> None:
    result = sapwood("doctor", "--json", environment={"SAPWOOD_KERNELS": "scalar"})
    assert json.loads(result.stdout)["kernels"]["chosen"] == "scalar"


def test_bench_decode_compares_modes_on_equal_tokens(sapwood: Sapwood, tiny_bundle: Path) -> None:
    result = sapwood(
        "bench", "decode", tiny_bundle, "--modes", "plain,chain,dynamic", "--repeats", "2",
        "--max-new-tokens", "8", "--prompt", "a b a b", "--threads", "1", "--json",
    )  # fmt: skip
    assert result.returncode == 0, result.stderr
    document = json.loads(result.stdout)
    assert document["equal_tokens"] is True
    assert [entry["mode"] for entry in document["results"]] == ["plain", "chain", "dynamic"]
    plain = document["results"][0]
    assert plain["mean_accepted_length"] == 1
    assert plain["mean_rows"] == 1
    assert plain["speedup"] == pytest.approx(1)
    assert all(entry["answers"] == 2 for entry in document["results"])


def test_export_and_generate_work_end_to_end(
    sapwood: Sapwood, tiny_source: Path, tmp_path: Path
) -> None:
    output = tmp_path / "bundle"
    exported = sapwood("export", tiny_source, "--output", output, "--json")
    assert exported.returncode == 0, exported.stderr
    document = json.loads(exported.stdout)
    assert document["output"] == str(output)
    assert document["manifest"]["schema_version"] == 1
    assert (
        document["bytes"]
        == sum(f.stat().st_size for f in output.iterdir())
        - (output / "manifest.json").stat().st_size
    )
    result = sapwood("generate", output, "--prompt", "tree", "--max-new-tokens", "4", "--json")
    assert len(json.loads(result.stdout)["token_ids"]) == 4
