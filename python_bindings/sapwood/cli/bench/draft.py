"""``sapwood bench draft``: how good a trained draft is, and what its passes cost."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING, Annotated, Any

import typer

from sapwood.cli.bench.draft_figures import calibration, summary
from sapwood.cli.bench.draft_table import show
from sapwood.cli.bench.suite_questions import Question, read_questions
from sapwood.cli.common import (
    BundleArgument,
    JsonOption,
    PerCategoryOption,
    SuiteOption,
    measuring,
    print_json,
)
from sapwood.cli.option_lists import with_options
from sapwood.cli.plot_file import check_plot
from sapwood.errors import SapwoodError
from sapwood.options import AnswerOptions, EngineOptions, completed

if TYPE_CHECKING:
    from sapwood._runtime import DraftComparison, DraftQuality
    from sapwood.engine import Engine

EXAMPLE = "Example:  sapwood bench draft --suite prompts.jsonl --per-category 4 --plot draft.png"

NODES = (1, 2, 4, 8, 16)
UNREAD = (1, 2, 4)
CONTEXT = 128


# Of an engine and its answers: those that say what the target answers, and on how many threads.
_UNUSED = (
    *("mode", "host", "kv", "drafter", "ngram", "verifier", "chain_length", "fixed_nodes"),
    *("adapt", "length_rule", "beta", "stop"),
)


@with_options(without=_UNUSED, max_new_tokens=128)
def draft(
    suite_file: SuiteOption,
    bundle: BundleArgument = None,
    per_category: PerCategoryOption = 4,
    depths: Annotated[int, typer.Option(min=1, max=16, help="Guesses ahead to look at.")] = 4,
    repeats: Annotated[
        int, typer.Option(min=1, max=1000, help="Rounds over the costs; medians are shown.")
    ] = 15,
    plot: Annotated[
        Path | None,
        typer.Option(help="Also draw how right the uncertainty network is, to this PNG."),
    ] = None,
    as_json: JsonOption = False,
    *,
    engine_options: EngineOptions,
    answer_options: AnswerOptions,
) -> None:
    """Measure a trained draft: acceptance by depth and category, coverage, calibration, cost.

    The target answers each prompt alone; then the draft is asked at every token of the answer, at
    every depth, the tokens before taken as right. Its costs are medians of passes that each come
    after a row of the target, as in a step.
    """
    from sapwood import _runtime
    from sapwood.engine import Engine

    if plot is not None:
        check_plot(plot)
    questions = read_questions(suite_file, per_category)
    engine = Engine(bundle, **engine_options)
    trained = engine.drafting.trained
    if trained is None:
        raise SapwoodError(
            "draft: no draft was trained for this target and came with Sapwood; name a folder "
            "with one as --draft"
        )
    options = completed(AnswerOptions, answer_options)
    quality = _runtime.DraftQuality.create(
        engine.model, trained, depths=depths, context_length=engine.context_length
    )
    texts = _compare(engine, quality, questions, options)
    if not texts:
        raise SapwoodError(f"--suite {suite_file}: every answer was empty; nothing to compare")
    every = [text for group in texts.values() for text in group]
    assert engine.drafting.folder is not None
    report = {
        "bundle": engine.manifest.get("name"),
        "draft": engine.drafting.folder.name,
        "kind": trained.drafter,
        "suite": suite_file.name,
        "questions": len(questions),
        "max_new_tokens": options["max_new_tokens"],
        "temperature": options["temperature"],
        "threads": engine.threads,
        "kernels": _runtime.active_kernels(),
        **summary(every),
        "by_category": {name: summary(group) for name, group in texts.items()},
        "calibration": calibration(every),
        "cost": _cost(quality, engine.context_length, repeats),
    }
    if plot is not None:
        if report["calibration"] is None:
            raise SapwoodError("--plot: this draft has no uncertainty network to draw")
        from sapwood.cli.bench import draft_plot

        draft_plot.draw(report, plot)
    if as_json:
        print_json(report)
    else:
        show(report)


def _compare(
    engine: Engine,
    quality: DraftQuality,
    questions: Sequence[Question],
    options: AnswerOptions,
) -> dict[str, list[list[DraftComparison]]]:
    """By category, of every answer that is not empty."""
    from sapwood.generation import start_session

    session = engine.new_session()
    texts: dict[str, list[list[DraftComparison]]] = {}
    for question in measuring(questions, lambda question: question.category):
        ids = engine.encode(question.prompt)
        start_session(session, ids, {**options, "mode": "plain"}, engine.tokenizer.eos_token_ids)
        while session.step():
            pass
        if len(session.tokens) > len(ids):
            group = texts.setdefault(question.category, [])
            group.append(quality.compare(session.tokens, len(ids)))
    return texts


def _cost(quality: DraftQuality, context_length: int, repeats: int) -> dict[str, Any]:
    """Milliseconds, and shares of one row of the target measured beside each."""
    context = min(CONTEXT, context_length - 1)
    unread = [rows for rows in UNREAD if rows < context]
    measured: dict[tuple[str, int], list[tuple[float, float]]] = {}
    for _ in range(repeats):
        for rows in unread:
            once = quality.cost(context=context, unread=rows, nodes=1)
            measured.setdefault(("text", rows), []).append((once.text_pass, once.target_row))
        for nodes in NODES:
            once = quality.cost(context=context, unread=1, nodes=nodes)
            measured.setdefault(("nodes", nodes), []).append((once.node_pass, once.target_row))
    target = median(row for pairs in measured.values() for _, row in pairs)
    return {
        "context": context,
        "target_row_ms": target,
        "passes": [
            {
                "over": over,
                "rows": rows,
                "ms": median(spent for spent, _ in pairs),
                "of_target_row": median(spent / row for spent, row in pairs),
            }
            for (over, rows), pairs in measured.items()
        ],
    }
