"""``sapwood bench suite``: decoding modes side by side over a file of prompts by category."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sapwood.cli.bench.report import check_page, write_page
from sapwood.cli.bench.suite_counts import Answer, Outcome, by_side, summarise
from sapwood.cli.bench.suite_peers import answer as peer_answer
from sapwood.cli.bench.suite_peers import check_weights, describe, installed_peers, opened
from sapwood.cli.bench.suite_questions import Question, read_questions
from sapwood.cli.bench.suite_record import Record
from sapwood.cli.bench.suite_sides import Side, sides_of
from sapwood.cli.bench.suite_table import show
from sapwood.cli.common import (
    BundleArgument,
    JsonOption,
    PerCategoryOption,
    SuiteOption,
    choices,
    measuring,
    print_json,
)
from sapwood.cli.option_lists import with_options
from sapwood.drafting import TAKES_DRAFT
from sapwood.errors import SapwoodError
from sapwood.options import (
    DRAFTERS,
    MODES,
    PROFILES,
    AnswerOptions,
    EngineOptions,
    completed,
    ids_must_agree,
)

if TYPE_CHECKING:
    from sapwood.engine import Engine
    from sapwood.peers import Peer
    from sapwood.peers.process import PeerProcess

EXAMPLE = (
    "Example:  sapwood bench suite --suite prompts.jsonl --per-category 4 "
    "--modes plain,dynamic --temperature 0.8 --json"
)
_WARM_UP = "List the months of the year, then list them again."


@with_options(without=("mode", "stop"), max_new_tokens=128)
def suite(
    suite_file: SuiteOption,
    bundle: BundleArgument = None,
    per_category: PerCategoryOption = 4,
    modes: Annotated[str, typer.Option(help="Modes to compare, separated by commas.")] = ",".join(
        MODES
    ),
    drafters: Annotated[
        str | None,
        typer.Option(
            help="Drafters to compare, separated by commas: every mode but plain with each.",
            show_default=False,
        ),
    ] = None,
    profiles: Annotated[
        str | None,
        typer.Option(
            help="Profiles (see --profile) to compare, separated by commas, likewise.",
            show_default=False,
        ),
    ] = None,
    record: Annotated[
        Path | None,
        typer.Option(
            help="Keep what was answered in this file; a run that was ended goes on where it was.",
            show_default=False,
        ),
    ] = None,
    peers: Annotated[
        Path | None,
        typer.Option(
            metavar="WEIGHTS",
            help="Also measure other runtimes that are installed (llama-cpp-python, "
            "openvino-genai), on the GGUF file that the bundle is made of.",
            show_default=False,
        ),
    ] = None,
    html: Annotated[
        Path | None,
        typer.Option(
            help="Also write a page with plots, which needs nothing beside itself, to this file.",
            show_default=False,
        ),
    ] = None,
    as_json: JsonOption = False,
    *,
    engine_options: EngineOptions,
    answer_options: AnswerOptions,
) -> None:
    """Compare decoding modes by category: speed, accepted tokens, rows and KV slots a step.

    So are drafters and profiles, with --drafters and --profiles.
    Every prompt is answered by all modes in turn before the next one, so that a drifting machine
    hits all alike; which mode goes first rotates. Each mode has a session of its own, whose drafter
    sees the prompts once and keeps what it learns from one to the next, as an engine's does. Only
    the steps are timed, not the prompt. Ids that differ from plain decoding's are counted.
    """
    from sapwood.engine import Engine

    if html is not None:
        check_page(html)
    compared = choices("--drafters", drafters, DRAFTERS) if drafters else []
    asked = choices("--profiles", profiles, PROFILES) if profiles else []
    ours = sides_of(choices("--modes", modes, MODES), compared, asked)
    names = [side.name for side in ours]
    questions = read_questions(suite_file, per_category)
    if compared and engine_options.get("drafter"):
        raise SapwoodError("--drafters: leave out --drafter, or name all of them here")
    if compared:  # one that runs the draft of --draft, if any does
        engine_options["drafter"] = next((d for d in compared if d in TAKES_DRAFT), compared[0])
    engine = Engine(bundle, **engine_options)
    answer_options = completed(AnswerOptions, answer_options)
    settings = _settings(engine, suite_file, answer_options)
    settings["drafter"] = ", ".join(compared) or settings["drafter"]
    settings["profile"] = ", ".join(asked) or settings["profile"]
    beside: list[Peer] = []
    left_out: dict[str, str] = {}
    if peers is not None:
        check_weights(peers, engine.manifest, answer_options["temperature"])
        beside, left_out = installed_peers()
    sides = [*names, *(peer.name for peer in beside)]
    kept = Record(record, {**settings, "modes": sides}) if record else None
    threads, context_length = engine.threads, engine.context_length
    with opened(beside, peers or Path(), threads=threads, context_length=context_length) as running:
        outcomes = _run(engine, questions, ours, running, answer_options, kept)
        versions = {name: process.version for name, process in running.items()}
    report = {
        **summarise(outcomes, names),
        "questions": len(questions),
        **settings,
        "cost_curve": "learned" if engine.measured_costs is None else "tuned",
        "ids_must_agree": ids_must_agree(answer_options),
        **_surroundings(engine, answer_options),
    }
    reference = report["ids_compared_with"]
    figures = by_side(outcomes, list(versions), reference)
    report["peers"] = describe(beside, versions, figures, outcomes, reference)
    report["peers_left_out"] = left_out
    if html is not None:
        write_page(html, report)
    if as_json:
        print_json(report)
    else:
        show(report)
    differing = report["differing_question_ids"]
    if differing and report["ids_must_agree"]:
        raise SapwoodError(
            f"the modes gave different tokens on {len(differing)} prompts "
            f"({', '.join(differing[:5])}); this is a bug of ours"
        )


def _settings(engine: Engine, suite_file: Path, options: AnswerOptions) -> dict[str, Any]:
    """Every option that was in force, by name; of a file, its name alone."""
    given = {**options, **engine.options, "threads": engine.threads}
    for unused in ("mode", "stop"):
        del given[unused]
    return {
        "suite": suite_file.name,
        "bundle": engine.manifest.get("name"),
        **{k: Path(v).name if isinstance(v, os.PathLike) else v for k, v in given.items()},
        "context_length": engine.context_length,
        "survey": engine.surveyed,
    }


def _surroundings(engine: Engine, options: AnswerOptions) -> dict[str, Any]:
    """The machine, and what was known of costs and draft before anything ran."""
    from sapwood import __version__, _runtime
    from sapwood.cost_cache import CostKey, load_cost_table, processor_name

    kv = engine.options["kv"]
    key = CostKey.of(engine.manifest, host=engine.host, threads=engine.threads, kv=kv)
    costs = load_cost_table(key)
    return {
        "sapwood_version": __version__,
        "processor": processor_name(),
        "kernels": _runtime.active_kernels(),
        "costs": None if costs is None else asdict(costs),
        "trained_draft_acceptance": engine.drafting.held_out_acceptance(
            sampled=options["temperature"] > 0
        ),
    }


def _run(
    engine: Engine,
    questions: Sequence[Question],
    ours: Sequence[Side],
    peers: Mapping[str, PeerProcess],
    options: AnswerOptions,
    record: Record | None,
) -> list[Outcome]:
    from sapwood.generation import start_session

    sessions = {side.name: engine.new_session(side.drafter) for side in ours}
    by_name = {side.name: side for side in ours}
    eos_token_ids = engine.tokenizer.eos_token_ids

    def answer(side: str, prompt: str, options: AnswerOptions) -> Answer:
        ids = engine.encode(prompt)
        if side in peers:
            return peer_answer(peers[side], ids, options["max_new_tokens"], eos_token_ids)
        session = sessions[side]
        start_session(session, ids, by_name[side].options(options, prompt), eos_token_ids)
        steps = list(iter(session.step, []))
        return Answer.of(steps, session.stats)

    sides = [*sessions, *peers]
    # The same for every side: caches and clocks of the machine, and the cost of rows.
    for side in sides:
        answer(side, _WARM_UP, {**options, "max_new_tokens": 24})
    outcomes = dict(record.outcomes) if record else {}
    missing = [question for question in questions if question.question_id not in outcomes]
    for question in measuring(missing, lambda question: question.category):
        turn = len(outcomes) % len(sides)
        answers = {
            side: answer(side, question.prompt, options) for side in (*sides[turn:], *sides[:turn])
        }
        outcome = Outcome(question.question_id, question.category, answers)
        outcomes[question.question_id] = outcome
        if record:
            record.add(outcome)
    return [outcomes[question.question_id] for question in questions]
