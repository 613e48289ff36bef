"""``sapwood bench suite``: decoding modes side by side over a file of prompts by category."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field, fields
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer
from rich.progress import BarColumn, Progress, TextColumn, TimeRemainingColumn
from rich.table import Table

from sapwood.cli.bench.decode import choices
from sapwood.cli.common import (
    BundleArgument,
    ContextLengthOption,
    Drafter,
    DrafterOption,
    Host,
    HostOption,
    JsonOption,
    Mode,
    NgramOption,
    SeedOption,
    TemperatureOption,
    ThreadsOption,
    messages_console,
    output_console,
    print_json,
)
from sapwood.errors import SapwoodError

if TYPE_CHECKING:
    from sapwood._runtime import SessionStats
    from sapwood.engine import Engine

EXAMPLE = (
    "Example:  sapwood bench suite --suite prompts.jsonl --per-category 4 "
    "--modes plain,dynamic --temperature 0.8 --json"
)


@dataclass(frozen=True)
class Question:
    """A line of the file; only the first turn is asked."""

    question_id: str
    category: str
    prompt: str


@dataclass
class Tally:
    """Sums over answers."""

    answers: int = 0
    emitted: int = 0
    steps: int = 0
    rows: int = 0
    drafted: int = 0
    accepted: int = 0
    soft_fallbacks: int = 0
    hard_fallbacks: int = 0
    seconds: float = 0.0
    draft_seconds: float = 0.0
    peak_slots: int = 0

    def add(self, stats: SessionStats) -> None:
        self.answers += 1
        self.emitted += stats.emitted_tokens
        self.steps += stats.steps
        self.rows += stats.rows_verified
        self.drafted += stats.drafted_tokens
        self.accepted += stats.accepted_tokens
        self.soft_fallbacks += stats.soft_fallbacks
        self.hard_fallbacks += stats.hard_fallbacks
        self.seconds += stats.decode_seconds
        self.draft_seconds += stats.draft_seconds
        self.peak_slots = max(self.peak_slots, stats.peak_kv_slots)

    def merge(self, other: Tally) -> None:
        for each in fields(self):
            if each.name != "peak_slots":
                setattr(self, each.name, getattr(self, each.name) + getattr(other, each.name))
        self.peak_slots = max(self.peak_slots, other.peak_slots)

    def summary(self) -> dict[str, Any]:
        return {
            "answers": self.answers,
            "tokens": self.emitted,
            "tokens_per_second": self.emitted / self.seconds if self.seconds else 0.0,
            "mean_accepted_length": self.emitted / max(1, self.steps),
            "mean_rows": self.rows / max(1, self.steps),
            "acceptance": self.accepted / max(1, self.drafted),
            "soft_fallbacks": self.soft_fallbacks,
            "hard_fallbacks": self.hard_fallbacks,
            "peak_kv_slots": self.peak_slots,
            "draft_share": self.draft_seconds / self.seconds if self.seconds else 0.0,
        }


@dataclass
class Results:
    """What was measured: sums by mode and category, and whether the ids were equal."""

    by_mode: dict[str, dict[str, Tally]] = field(default_factory=dict)
    different: list[str] = field(default_factory=list)  # question ids

    def tally(self, mode: str, category: str) -> Tally:
        return self.by_mode.setdefault(mode, {}).setdefault(category, Tally())


def suite(
    suite_file: Annotated[
        Path,
        typer.Option(
            "--suite",
            help="JSON lines, each an object with question_id, category and turns.",
            show_default=False,
        ),
    ],
    bundle: BundleArgument = None,
    per_category: Annotated[
        int, typer.Option(min=1, help="Prompts of each category, the first in the file.")
    ] = 4,
    modes: Annotated[
        str, typer.Option(help="Modes to compare, separated by commas.")
    ] = "plain,chain,fixed,dynamic",
    drafter: DrafterOption = Drafter.mix,
    ngram: NgramOption = None,
    host: HostOption = Host.native,
    temperature: TemperatureOption = 0.0,
    seed: SeedOption = 0,
    max_new_tokens: Annotated[
        int, typer.Option("--max-new-tokens", min=1, help="Tokens of each answer.")
    ] = 128,
    chain_length: Annotated[
        int, typer.Option(min=1, max=255, help="Guesses a step of the mode chain.")
    ] = 4,
    fixed_nodes: Annotated[
        int, typer.Option(min=1, max=255, help="Nodes of the tree of the mode fixed.")
    ] = 15,
    adapt: Annotated[
        bool,
        typer.Option(
            "--adapt",
            help="Let chain and fixed fall back, and chain choose its length, as it goes.",
        ),
    ] = False,
    threads: ThreadsOption = None,
    context_length: ContextLengthOption = None,
    as_json: JsonOption = False,
) -> None:
    """Compare decoding modes by category: speed, accepted tokens, rows and KV slots a step.

    Every prompt is answered by all modes in turn before the next one, so that a drifting machine
    hits all alike; which mode goes first rotates. Each mode has a session of its own, whose drafter
    sees the prompts once and keeps what it learns from one to the next, as an engine's does. Only
    the steps are timed, not the prompt.
    """
    from sapwood.engine import Engine

    names = choices("--modes", modes, [mode.value for mode in Mode])
    questions = read_questions(suite_file, per_category)
    engine = Engine(
        bundle,
        host=host.value,
        drafter=drafter.value,
        ngram=ngram,
        threads=threads,
        context_length=context_length,
    )
    runs = Runs(engine, names, temperature, seed, max_new_tokens, chain_length, fixed_nodes, adapt)
    results = Results()
    with Progress(
        TextColumn("{task.description}"),
        BarColumn(),
        TimeRemainingColumn(),
        console=messages_console(),
        transient=True,
        disable=not sys.stderr.isatty(),
    ) as progress:
        task = progress.add_task("warming up", total=len(questions))
        runs.warm_up()
        for number, question in enumerate(questions):
            progress.update(task, description=question.category)
            answers = set()
            for mode in (*names[number % len(names) :], *names[: number % len(names)]):
                ids, stats = runs.answer(mode, question.prompt)
                answers.add(ids)
                results.tally(mode, question.category).add(stats)
            if len(answers) > 1:
                results.different.append(question.question_id)
            progress.advance(task)
    report = {
        **summarise(results, names),
        "suite": suite_file.name,
        "questions": len(questions),
        "drafter": drafter.value,
        "ngram": None if ngram is None else ngram.name,
        "host": host.value,
        "threads": engine.threads,
        "temperature": temperature,
        "seed": seed,
        "max_new_tokens": max_new_tokens,
        "chain_length": chain_length,
        "fixed_nodes": fixed_nodes,
        "adapt": adapt,
        "cost_curve": "learned" if engine.measured_costs is None else "tuned",
    }
    if as_json:
        print_json(report)
    else:
        _print(report)
    if results.different:
        raise SapwoodError(
            f"the modes gave different tokens on {len(results.different)} prompts "
            f"({', '.join(results.different[:5])}); this is a bug of ours"
        )


class Runs:
    """One session a mode over the same model."""

    def __init__(
        self,
        engine: Engine,
        modes: Sequence[str],
        temperature: float,
        seed: int,
        max_new_tokens: int,
        chain_length: int,
        fixed_nodes: int,
        adapt: bool,
    ) -> None:
        from sapwood import _runtime

        self._engine = engine
        self._sampling = _runtime.SamplingOptions(temperature=temperature, seed=seed)
        self._sampling.check()
        self._max_new_tokens = max_new_tokens
        self._chain_length = chain_length
        self._fixed_nodes = fixed_nodes
        self._adapt = adapt
        self._sessions = {mode: engine.new_session() for mode in modes}

    def warm_up(self) -> None:
        """The same for every mode: caches and clocks of the machine, and the cost of rows."""
        for mode in self._sessions:
            self.answer(mode, "List the months of the year, then list them again.", limit=24)

    def answer(
        self, mode: str, prompt: str, limit: int | None = None
    ) -> tuple[tuple[int, ...], SessionStats]:
        tokenizer = self._engine.tokenizer
        if tokenizer.chat_template is None:
            ids = tokenizer.encode_prompt(prompt)
        else:
            ids = tokenizer.encode_chat([{"role": "user", "content": prompt}])
        session = self._sessions[mode]
        session.start(
            ids,
            mode=mode,
            sampling=self._sampling,
            max_new_tokens=limit or self._max_new_tokens,
            eos_token_ids=list(tokenizer.eos_token_ids),
            chain_length=self._chain_length,
            fixed_nodes=self._fixed_nodes,
            adapt=self._adapt,
        )
        while session.step():
            pass
        return tuple(session.tokens[len(ids) :]), session.stats


def read_questions(path: Path, per_category: int) -> list[Question]:
    """The first questions of each category, those of all categories taking turns.

    Raises SapwoodError for a file that cannot be read or a line that is not a question.
    """
    try:
        text = path.read_text(encoding="utf-8")
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "not UTF-8 text"
        raise SapwoodError(f"--suite {path}: {reason}; give a file of JSON lines") from error
    by_category: dict[str, list[Question]] = {}
    for number, line in enumerate(text.splitlines(), 1):
        if not line.strip():
            continue
        question = _question(line, f"--suite {path}, line {number}")
        group = by_category.setdefault(question.category, [])
        if len(group) < per_category:
            group.append(question)
    if not by_category:
        raise SapwoodError(f"--suite {path}: no question in it; give JSON lines with turns")
    return list(_in_turns(list(by_category.values())))


def _question(line: str, where: str) -> Question:
    try:
        document = json.loads(line)
        prompt = document["turns"][0]
        question = Question(str(document["question_id"]), str(document["category"]), prompt)
    except (ValueError, KeyError, IndexError, TypeError) as error:
        raise SapwoodError(
            f"{where}: not an object with question_id, category and turns"
        ) from error
    if not isinstance(prompt, str) or not prompt:
        raise SapwoodError(f"{where}: the first turn must be a text")
    return question


def _in_turns(groups: Sequence[Sequence[Question]]) -> Iterator[Question]:
    for index in range(max(map(len, groups))):
        for group in groups:
            if index < len(group):
                yield group[index]


def summarise(results: Results, modes: Sequence[str]) -> dict[str, Any]:
    """The figures of the object that ``--json`` prints."""
    report: dict[str, Any] = {}
    for mode in modes:
        whole = Tally()
        by_category = {}
        for category, tally in results.by_mode.get(mode, {}).items():
            by_category[category] = tally.summary()
            whole.merge(tally)
        report[mode] = {**whole.summary(), "by_category": by_category}
    plain = report.get("plain")
    for summary in report.values():
        _compare(summary, plain)
        for category, part in summary["by_category"].items():
            _compare(part, plain and plain["by_category"][category])
    return {"modes": report, "equal_tokens": not results.different}


def _compare(summary: dict[str, Any], plain: dict[str, Any] | None) -> None:
    base = plain["tokens_per_second"] if plain else 0
    summary["speedup"] = summary["tokens_per_second"] / base if base else None


def _print(report: dict[str, Any]) -> None:
    modes = report["modes"]
    table = Table("category", box=None, padding=(0, 2, 0, 0))
    for mode in modes:
        table.add_column(f"{mode}: tokens/s", justify="right")
        table.add_column("a step", justify="right")
        table.add_column("rows", justify="right")
    categories = list(dict.fromkeys(c for m in modes.values() for c in m["by_category"]))
    for category in [*categories, "all"]:
        cells = []
        for mode in modes.values():
            part = mode if category == "all" else mode["by_category"][category]
            ratio = "" if part["speedup"] is None else f" ({part['speedup']:.2f}x)"
            cells += [
                f"{part['tokens_per_second']:.1f}{ratio}",
                f"{part['mean_accepted_length']:.2f}",
                f"{part['mean_rows']:.1f}",
            ]
        table.add_row(category, *cells)
    console = output_console()
    console.print(table)
    peaks = ", ".join(f"{name} {mode['peak_kv_slots']}" for name, mode in modes.items())
    equal = "all modes gave the same tokens" if report["equal_tokens"] else "TOKENS DIFFER"
    console.print(
        f"{report['questions']} prompts, temperature {report['temperature']:g}, drafter "
        f"{report['drafter']}, {report['threads']} threads, costs {report['cost_curve']}; "
        f"peak KV slots: {peaks}; {equal}",
        style="dim",
    )
