"""The page of ``sapwood bench suite``: what it shows and must not hold, and in a browser."""

from __future__ import annotations

import io
import json
import re
from html.parser import HTMLParser
from pathlib import Path
from typing import Any

import pytest

from conftest import Sapwood, refused
from headless_chromium import chromium, find_chromium
from sapwood.cli.bench.report_drawing import ticks
from sapwood.cli.bench.report_page import page
from sapwood.manifest import read_manifest
from sapwood.tokenizer import Tokenizer

# No word of these may be found again; the model is tiny, but takes any text.
PROMPTS = ["Zanzibar quokka marmalade", "periwinkle Xylophone gazebo"]
VOID = {"meta"}  # the parts of drawings close themselves


def spread(median: float) -> dict[str, float]:
    return {"lower_quartile": median * 0.8, "median": median, "upper_quartile": median * 1.3}


def part(speed: float, lengths: list[int], depths: list[float]) -> dict[str, Any]:
    return {
        "tokens_per_second": 100 * speed,
        "speedup": speed,
        "answer_tokens_per_second": spread(100 * speed),
        "answer_speedup": spread(speed),
        "steps_by_tokens": lengths,
        "acceptance_by_depth": depths,
        "mean_accepted_length": 1.5,
        "mean_rows": 3.0,
        "draft_share": 0.1,
    }


@pytest.fixture
def result() -> dict[str, Any]:
    """What ``bench suite --json`` prints, as far as the page shows it: 13 categories, 3 modes."""
    names = [f"category number {index}" for index in range(13)]
    modes = {
        mode: {**whole, "by_category": dict.fromkeys(names, whole)}
        for mode, whole in (
            ("plain", part(1.0, [100], [])),
            ("chain", part(1.2, [60, 30, 10], [0.4, 0.25])),
            ("dynamic", part(1.5, [50, 20, 9, 8, 7, 3, 2, 1, 1], [0.5, 0.6])),
        )
    }
    return {
        "modes": modes,
        "peers": {},
        "peers_left_out": {},
        "differing_question_ids": [],
        "ids_must_agree": True,
        "questions": 52,
        "suite": "prompts.jsonl",
        "bundle": "A-model",
        "temperature": 0.0,
        "max_new_tokens": 128,
        "threads": 2,
        "processor": "A processor",
        "kernels": "avx2",
        "verifier": "target_draw",
        "sapwood_version": "0.1.0",
        "costs": {
            "contexts": [128, 1024],
            "rows": [1, 2, 4, 8, 32],
            "milliseconds": [[4.0, 4.1, 4.3, 6.0, 20.0], [5.0, 5.2, 6.0, 9.0, 31.0]],
        },
        "trained_draft_acceptance": [0.44, 0.42, 0.4],
    }


class Page(HTMLParser):
    """Tags that are closed as they were opened, the text, and every attribute."""

    def __init__(self, text: str) -> None:
        super().__init__()
        self.words: list[str] = []
        self.tags: list[str] = []
        self.attributes: list[tuple[str, str]] = []
        self._open: list[str] = []
        self.feed(text)
        self.close()
        assert not self._open, self._open

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(name, value or "") for name, value in attrs]
        if tag not in VOID:
            self._open.append(tag)

    def handle_startendtag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append(tag)
        self.attributes += [(name, value or "") for name, value in attrs]

    def handle_endtag(self, tag: str) -> None:
        assert self._open.pop() == tag

    def handle_data(self, data: str) -> None:
        self.words.append(data)


def test_the_page_is_whole_and_needs_nothing_beside_itself(result: dict[str, Any]) -> None:
    text = page(result)
    read = Page(text)
    assert read.tags.count("svg") == 4
    # Nothing that loads: no scripts, pictures, frames, links, addresses or imports.
    assert not {"script", "img", "iframe", "link", "object", "a", "image"} & set(read.tags)
    assert not [name for name, _ in read.attributes if name in ("src", "href", "srcset", "data")]
    assert "://" not in text
    assert not re.search(r"url\(|@import", text)
    assert ("name", "viewport") in read.attributes
    words = " ".join(read.words)
    for expected in (
        "1.50x",
        "150",
        "identical",
        "80–130",
        "1,024 tokens",
        "8+",
        "category number",
    ):
        assert expected in words, expected


def test_what_a_file_calls_things_stays_text(result: dict[str, Any]) -> None:
    hostile = '"><script>alert(1)</script>'
    for mode in result["modes"].values():
        mode["by_category"] = {hostile: mode["by_category"]["category number 0"]}
    result["modes"] = {hostile: result["modes"]["dynamic"], **result["modes"]}
    result |= {"bundle": hostile, "suite": hostile, "processor": hostile, hostile: hostile}
    read = Page(page(result))
    assert "script" not in read.tags
    assert not [name for name, _ in read.attributes if "alert" in name]


def test_the_page_says_what_it_does_not_know(result: dict[str, Any]) -> None:
    result |= {"costs": None, "trained_draft_acceptance": None}
    result["modes"] = {"plain": result["modes"]["plain"]}
    text = page(result)
    assert "sapwood tune" in text
    assert Page(text).tags.count("svg") == 1  # nothing drafted, nothing measured
    result["modes"]["plain"]["answer_speedup"] = None
    for each in result["modes"]["plain"]["by_category"].values():
        each |= {"answer_speedup": None, "speedup": None}
    assert "tokens a second" in page(result)


def test_peers_stand_beside_the_modes_with_what_is_not_comparable(result: dict[str, Any]) -> None:
    assert "not comparable" not in page(result)
    whole = part(0.4, [100], [])
    peer = {"version": "peer 1.2", "differs": "other rounding", "equal_answers": 7}
    categories = {"by_category": dict.fromkeys(result["modes"]["plain"]["by_category"], whole)}
    result |= {"peers": {"A peer": {**whole, **categories, **peer}}}
    result |= {"peers_left_out": {"B peer": "not installed"}}
    words = " ".join(Page(page(result)).words)
    assert "peer 1.2; other rounding; 7 of 52 answers" in words
    assert "B peer not installed" in words
    assert "category number 3, A peer: 0.40 (0.32 to 0.52)" in words


def test_answers_that_differ_are_said_first(result: dict[str, Any]) -> None:
    result["differing_question_ids"] = ["4", "7"]
    assert "2 differ" in page(result)
    assert "same law" in page(result | {"ids_must_agree": False, "verifier": "rejection"})


@pytest.mark.parametrize(
    ("low", "high"), [(0, 1), (0.77, 2.31), (0, 0.07), (12, 380), (5, 5), (0, 0), (-1, 3)]
)
def test_ticks_are_few_and_cover_what_is_shown(low: float, high: float) -> None:
    marks = ticks(low, high)
    assert 2 <= len(marks) <= 7
    assert marks[0] <= low
    assert marks[-1] >= high
    assert marks == sorted(set(marks))


def test_a_suite_writes_a_page_without_a_word_of_prompts_or_answers(
    sapwood_here: Sapwood, tiny_bundle: Path, tmp_path: Path
) -> None:
    suite, record, report = (tmp_path / name for name in ("s.jsonl", "r.jsonl", "page.html"))
    lines = [
        {"question_id": index, "category": f"kind{index}", "turns": [prompt]}
        for index, prompt in enumerate(PROMPTS)
    ]
    suite.write_text("".join(json.dumps(line) + "\n" for line in lines))
    run = sapwood_here(
        *("bench", "suite", tiny_bundle, "--suite", suite, "--modes", "plain,chain"),
        *("--threads", "1", "--max-new-tokens", "24", "--record", record, "--html", report),
        "--json",
    )
    assert run.returncode == 0, run.stderr
    text = report.read_text(encoding="utf-8")
    words = " ".join(Page(text).words)
    assert "kind1" in words
    assert "chain" in words
    ids = [
        json.loads(line)["answers"]["plain"]["ids"] for line in record.read_text().splitlines()[1:]
    ]
    answers = [
        Tokenizer.from_bundle(tiny_bundle, read_manifest(tiny_bundle)).decode(each) for each in ids
    ]
    assert all(map(len, answers))
    for where in (text, run.stdout, run.stderr):
        for secret in (*" ".join(PROMPTS).split(), *answers):
            assert secret not in where
        for each in ids:
            assert ", ".join(map(str, each)) not in where
    # The same page again, from what was printed.
    printed, again = tmp_path / "result.json", tmp_path / "again.html"
    printed.write_text(run.stdout)
    assert sapwood_here("bench", "report", printed, "--html", again).returncode == 0
    assert again.read_text(encoding="utf-8") == text


def test_what_cannot_become_a_page_is_one_line(
    sapwood_here: Sapwood, tmp_path: Path, result: dict[str, Any]
) -> None:
    printed, html = tmp_path / "result.json", tmp_path / "page.html"
    printed.write_text("{}")
    refused(sapwood_here("bench", "report", printed, "--html", html), "result.json", "bench suite")
    printed.write_text("[")
    refused(sapwood_here("bench", "report", printed, "--html", html), "result.json", "JSON")
    printed.write_text(json.dumps(result).replace("1.5", "NaN"))
    refused(sapwood_here("bench", "report", printed, "--html", html), "result.json", "NaN")
    printed.write_text(json.dumps(result))
    refused(sapwood_here("bench", "report", printed, "--html", tmp_path / "page.txt"), ".html")
    refused(
        sapwood_here("bench", "report", printed, "--html", tmp_path / "no" / "p.html"), "no folder"
    )
    refused(sapwood_here("bench", "report", tmp_path / "absent", "--html", html), "absent")
    assert [path.name for path in tmp_path.iterdir()] == ["result.json"]


def test_a_browser_shows_the_page_on_a_phone_and_a_desktop_in_light_and_dark(
    result: dict[str, Any], tmp_path: Path
) -> None:
    program = find_chromium()
    if program is None:
        pytest.skip("chromium is not installed")
    image = pytest.importorskip("matplotlib.image")
    html = tmp_path / "page.html"
    html.write_text(page(result), encoding="utf-8")
    pictures = {}
    with chromium(program, tmp_path / "profile") as browser:
        for name, width, dark in (
            ("phone", 360, False),
            ("night", 360, True),
            ("desk", 1200, False),
        ):
            browser.open(html, width=width, height=800, dark=dark)
            assert browser.requests == [html.resolve().as_uri()]
            # Unfolded, nothing may be wider than the screen either.
            browser.evaluate("document.querySelectorAll('details').forEach(d => d.open = true)")
            assert browser.evaluate("document.documentElement.scrollWidth") <= width
            assert browser.evaluate("document.querySelectorAll('svg').length") == 4
            clipped = (
                "[...document.querySelectorAll('.scroll')].map(e => e.scrollWidth - e.clientWidth)"
            )
            assert max(browser.evaluate(clipped)) <= 0, name
            letters = (
                "Math.min(...[...document.querySelectorAll('svg text')]"
                ".map(e => e.getBoundingClientRect().height))"
            )
            assert browser.evaluate(letters) >= 9  # CSS pixels: readable
            pictures[name] = image.imread(io.BytesIO(browser.picture()))[..., :3]
        # Several drafters and profiles in one run: more sides, with longer names.
        chain = result["modes"].pop("chain")
        names = [
            f"{m} {d} auto" for m in ("chain", "dynamic") for d in ("early-exit", "mix", "head")
        ]
        result["modes"] |= dict.fromkeys(names, chain)
        html.write_text(page(result), encoding="utf-8")
        browser.open(html, width=360, height=800, dark=False)
        assert browser.evaluate("document.documentElement.scrollWidth") <= 360
        assert browser.evaluate(f"{clipped}[0]") <= 0, "the table of modes"
        lines = "[...new Set([...document.querySelectorAll('svg .range')].map(e => "
        colours = browser.evaluate(lines + "getComputedStyle(e).stroke))].length")
        assert colours == len(names) + 1, "a colour for every side"
    for name, picture in pictures.items():
        assert picture.shape[1] == (1200 if name == "desk" else 360)
        assert picture.shape[0] > 800
        paper = picture[2, 2].mean()
        assert paper < 0.2 if name == "night" else paper > 0.9
        # Every mode's colour is there: blue of the first that drafts, orange of the second.
        for shade in ((0.18, 0.44, 0.69), (0.76, 0.41, 0.1)):
            if name != "night":
                assert (abs(picture - shade).max(axis=-1) < 0.03).sum() > 50
