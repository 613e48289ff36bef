"""The page of a ``bench suite`` run: one file, no address in it, readable on a phone."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from html import escape
from pathlib import Path
from typing import Any

from sapwood.cli.bench import report_plots
from sapwood.cli.bench.report_plots import colours, figure_of, sides_of

_STYLE = Path(__file__).with_name("report.css")
_NOT_TUNED = "Not measured on this machine: run `sapwood tune` first, and the curve is drawn here."
_MODES_NOTE = (
    "Medians over single answers; small, the quartiles. A step: tokens that it emitted; rows: what "
    "it verified; draft: its share of the time. Every prompt was answered by all modes in turn, so "
    "that a drifting machine hit all alike; the prompt's own pass is not timed."
)
_PEERS_NOTE = (
    "Peers run in processes of their own, in turn with ours, with as many threads, decode plainly "
    "and greedily, and are given the same tokens. What differs in their arithmetic lets their text "
    "part ways with ours, so that speeds are those of other texts."
)


def page(report: Mapping[str, Any]) -> str:
    """Of the object that ``sapwood bench suite --json`` prints.

    Raises KeyError, TypeError, ValueError or the like for another object.
    """
    over_plain = figure_of(report) == "answer_speedup"
    shown = [side for side in sides_of(report) if not (over_plain and side == "plain")]
    title = f"{report['bundle']}: decoding modes side by side"
    body = [
        f"<h1>{escape(title)}</h1>",
        f'<p class="soft">{escape(_subtitle(report))}</p>',
        _facts(report),
        '<div class="flow">',
        _card("Modes", _modes_table(report), _MODES_NOTE),
        _card(
            "Speed by category",
            _legend(report, shown) + report_plots.by_category(report),
            "Dots: the median over single answers; lines: from the lower to the upper quartile.",
        ),
        _drafting_card(
            report,
            "Tokens a step",
            report_plots.tokens_a_step(report),
            "The accepted guesses and the target's own token.",
        ),
        _drafting_card(
            report,
            "Acceptance by depth",
            report_plots.acceptance_by_depth(report),
            "Of the steps whose guesses before were all accepted, the share whose guess at this "
            "depth was too. What a mode did not draft counts as not accepted.",
            trained=bool(report["trained_draft_acceptance"]),
        ),
        _card(
            "Cost of a pass",
            report_plots.cost_curve(report) or f"<p>{escape(_NOT_TUNED)}</p>",
            "What the target takes to verify so many rows, by the tokens in its cache. A row more "
            "than one must cost little for guesses to pay.",
        ),
        "</div>",
        _peers_card(report),
        _card("By category, in numbers", _category_table(report)),
        _card("Settings", _settings(report)),
    ]
    return (
        '<!doctype html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        '<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        '<meta http-equiv="Content-Security-Policy" '
        "content=\"default-src 'none'; style-src 'unsafe-inline'\">\n"
        f"<title>{escape(title)}</title>\n<style>\n{_STYLE.read_text(encoding='utf-8')}</style>\n"
        f"</head>\n<body>\n{''.join(body)}\n</body>\n</html>\n"
    )


def _subtitle(report: Mapping[str, Any]) -> str:
    sampling = "greedy" if report["temperature"] == 0 else f"sampled at {report['temperature']:g}"
    threads = "1 thread" if report["threads"] == 1 else f"{report['threads']} threads"
    return (
        f"{report['questions']} prompts of {report['suite']}, {sampling}, "
        f"{report['max_new_tokens']} tokens at most; {report['processor']}, {report['kernels']} "
        f"kernels, {threads}; Sapwood {report['sapwood_version']}"
    )


def _facts(report: Mapping[str, Any]) -> str:
    modes, figure = report["modes"], figure_of(report)
    fastest = max(modes, key=lambda name: (modes[name][figure] or {"median": 0.0})["median"])
    best = modes[fastest]
    facts = []
    if best["answer_speedup"]:
        facts.append(
            (_median(best["answer_speedup"], ".2f", "x"), f"{fastest} over plain decoding")
        )
    if best["answer_tokens_per_second"]:
        speed = _median(best["answer_tokens_per_second"], ".0f")
        facts.append((speed, f"tokens a second, {fastest}"))
    facts.append((f"{best['mean_accepted_length']:.2f}", "tokens a step"))
    facts.append(_same(report))
    cells = (
        f'<div class="card fact"><b>{escape(fact)}</b> <span class="soft">{escape(what)}</span>'
        "</div>"
        for fact, what in facts
    )
    return f'<div class="facts">{"".join(cells)}</div>'


def _same(report: Mapping[str, Any]) -> tuple[str, str]:
    differing = len(report["differing_question_ids"])
    if not differing:
        return "identical", f"all {report['questions']} answers, in every mode"
    if not report["ids_must_agree"]:
        return "same law", f"{report['verifier']} keeps the law of the text, not the tokens"
    return f"{differing} differ", "answers that are not the same in every mode: a bug"


def _modes_table(report: Mapping[str, Any]) -> str:
    style = colours(report)
    rows = [
        [
            f'<span class="legend"><span class="{style[name]}">{escape(name)}</span></span>',
            _with_quartiles(mode["answer_tokens_per_second"], ".0f"),
            _with_quartiles(mode["answer_speedup"], ".2f", "x"),
            f"{mode['mean_accepted_length']:.2f}",
            f"{mode['mean_rows']:.1f}",
            f"{mode['draft_share']:.0%}",
        ]
        for name, mode in sides_of(report).items()
    ]
    return _table(("mode", "tokens/s", "over plain", "a step", "rows", "draft"), rows)


def _category_table(report: Mapping[str, Any]) -> str:
    modes, figure = sides_of(report), figure_of(report)
    pattern, unit = (".2f", "x") if figure == "answer_speedup" else (".0f", "")
    rows = [
        [
            escape(category),
            *(
                _with_quartiles(mode["by_category"][category][figure], pattern, unit)
                for mode in modes.values()
            ),
        ]
        for category in next(iter(modes.values()))["by_category"]
    ]
    together = [f"{mode['tokens_per_second']:.1f}" for mode in modes.values()]
    rows.append(["all tokens together, tokens/s", *together])
    what = "Speed-up over plain decoding" if unit else "Tokens a second"
    inside = _table(("category", *map(escape, modes)), rows)
    return f"<details><summary>{what}: medians, quartiles</summary>{inside}</details>"


def _median(spread: Mapping[str, float], pattern: str, unit: str = "") -> str:
    return format(spread["median"], pattern) + unit


def _with_quartiles(spread: Mapping[str, float] | None, pattern: str, unit: str = "") -> str:
    if spread is None:
        return "-"
    low, high = (format(spread[f"{name}_quartile"], pattern) for name in ("lower", "upper"))
    return f'{_median(spread, pattern, unit)}<span class="spread">{low}–{high}</span>'


def _table(heads: Iterable[str], rows: Iterable[list[str]]) -> str:
    head = "".join(f"<th>{cell}</th>" for cell in heads)
    lines = ("<tr>" + "".join(f"<td>{cell}</td>" for cell in row) + "</tr>" for row in rows)
    return (
        f'<div class="scroll"><table><thead><tr>{head}</tr></thead>'
        f"<tbody>{''.join(lines)}</tbody></table></div>"
    )


def _settings(report: Mapping[str, Any]) -> str:
    """Every setting of the run: whatever of the object is one value."""
    entries = "".join(
        f"<dt>{escape(name.replace('_', ' '))}</dt><dd>{escape(_word(value))}</dd>"
        for name, value in report.items()
        if value is None or isinstance(value, str | int | float)
    )
    return f"<details><summary>Everything that was in force</summary><dl>{entries}</dl></details>"


def _word(value: str | float | None) -> str:
    if value is None:
        return "none"
    if isinstance(value, bool):
        return "yes" if value else "no"
    return str(value)


def _peers_card(report: Mapping[str, Any]) -> str:
    lines = [
        (
            name,
            f"{peer['version']}; {peer['differs']}; {peer['equal_answers']} of "
            f"{report['questions']} answers are ours token for token",
        )
        for name, peer in report["peers"].items()
    ]
    lines += report["peers_left_out"].items()
    if not lines:
        return ""
    entries = "".join(f"<dt>{escape(name)}</dt><dd>{escape(line)}</dd>" for name, line in lines)
    return _card("What is not comparable", f"<dl>{entries}</dl>", _PEERS_NOTE)


def _legend(report: Mapping[str, Any], names: Iterable[str], *, trained: bool = False) -> str:
    style = colours(report)
    marks = [f'<span class="{style[name]}">{escape(name)}</span>' for name in names]
    if trained:
        marks.append('<span class="dashed">the trained draft alone, on held-out text</span>')
    return f'<div class="legend">{"".join(marks)}</div>'


def _drafting_card(
    report: Mapping[str, Any], heading: str, plot: str, note: str, *, trained: bool = False
) -> str:
    if not plot:
        return ""
    drafting = [name for name in report["modes"] if name != "plain"]
    return _card(heading, _legend(report, drafting, trained=trained) + plot, note)


def _card(heading: str, content: str, note: str = "") -> str:
    caption = f"<figcaption>{escape(note)}</figcaption>" if note else ""
    return f'<figure class="card"><h2>{escape(heading)}</h2>{content}{caption}</figure>'
