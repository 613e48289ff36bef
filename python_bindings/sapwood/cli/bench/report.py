"""``sapwood bench report``: the page of a ``bench suite`` run, made again from what it printed."""

from __future__ import annotations

import json
import os
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, NoReturn

import typer

from sapwood.errors import SapwoodError

EXAMPLE = (
    "Example:  sapwood bench suite --suite prompts.jsonl --json > result.json; "
    "sapwood bench report result.json --html report.html"
)


def report(
    result: Annotated[
        Path, typer.Argument(help="What `sapwood bench suite --json` printed, in a file.")
    ],
    html: Annotated[Path, typer.Option(help="The page to write.", show_default=False)],
) -> None:
    """Make the page with plots of a `bench suite` run: speed, accepted tokens, acceptance, costs.

    One file that needs nothing beside itself and asks no other machine for anything. It holds
    figures and settings, nothing of prompts or answers.
    """
    check_page(html)
    try:
        document = json.loads(result.read_text(encoding="utf-8"), parse_constant=_no_number)
    except OSError as error:
        raise SapwoodError(f"{result}: {error.strerror}") from error
    except (ValueError, RecursionError) as error:
        raise SapwoodError(f"{result}: not valid JSON ({error})") from error
    try:
        write_page(html, document)
    except (ValueError, LookupError, TypeError, AttributeError, ArithmeticError) as error:
        raise SapwoodError(
            f"{result}: not what `sapwood bench suite --json` of this version prints; run it again"
        ) from error


def check_page(path: Path) -> None:
    """Raises before anything is measured if the page could not be written afterwards."""
    if path.suffix.lower() not in (".html", ".htm"):
        raise SapwoodError(f"--html {path}: give a file that ends in .html")
    if not path.parent.is_dir():
        raise SapwoodError(f"--html {path}: there is no folder {path.parent}; make it first")


def write_page(path: Path, document: Mapping[str, Any]) -> None:
    """Writes the page of what ``bench suite --json`` prints, whole or not at all."""
    from sapwood.cli.bench.report_page import page

    text = page(document)
    temporary = path.with_name(f"{path.name}.{os.getpid()}.partial")
    try:
        temporary.write_text(text, encoding="utf-8")
        temporary.replace(path)
    finally:
        temporary.unlink(missing_ok=True)


def _no_number(name: str) -> NoReturn:
    raise ValueError(f"{name} is no number")
