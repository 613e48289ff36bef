"""``sapwood ngram``: tables of what usually follows what, for drafters to begin with."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from sapwood.cli.common import JsonOption, human_bytes, output_console, print_json
from sapwood.errors import SapwoodError

EXAMPLE = "Example:  sapwood ngram build notes.txt letters.txt -o letters.ngram"

app = typer.Typer(
    help="Tables of what usually follows what in your texts, which drafters begin with.",
    epilog=EXAMPLE,
    no_args_is_help=True,
    rich_markup_mode="rich",
)


@app.command("build", epilog=EXAMPLE)
def build(
    texts: Annotated[list[Path], typer.Argument(metavar="TEXT...", help="Files of text, UTF-8.")],
    output: Annotated[
        Path, typer.Option("--output", "-o", help="The table to write.", show_default=False)
    ],
    bundle: Annotated[
        str | None,
        typer.Option(
            help="Whose tokenizer to use. Without it: the default bundle of scripts/run.",
            show_default=False,
        ),
    ] = None,
    as_json: JsonOption = False,
) -> None:
    """Count what follows every token and pair of tokens in some texts, and save it.

    A drafter that begins with it has something to guess before the target has said anything. Texts
    like the answers to come are best. The answers themselves do not change.
    """
    from sapwood import _runtime
    from sapwood.manifest import read_manifest, tokenizer_sha256
    from sapwood.paths import resolve_bundle
    from sapwood.tokenizer import Tokenizer

    if not output.parent.is_dir():
        raise SapwoodError(f"{output}: there is no folder {output.parent}; make it first")
    contents = [_read(path) for path in texts]
    folder = resolve_bundle(bundle)
    manifest = read_manifest(folder)
    tokenizer = Tokenizer.from_bundle(folder, manifest)
    ids = [tokenizer.encode(text) for text in contents]
    table = _runtime.NgramTable.build(
        ids,
        vocabulary=manifest["target"]["spec"]["vocabulary_size"],
        tokenizer_sha256=tokenizer_sha256(manifest),
    )
    table.write(str(output))
    size = output.stat().st_size
    tokens = sum(map(len, ids))
    if as_json:
        print_json({"path": str(output), "tokens": tokens, "contexts": len(table), "bytes": size})
        return
    output_console().print(
        f"{output}: {len(table):,} contexts from {tokens:,} tokens, {human_bytes(size)}",
        soft_wrap=True,
    )


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8")
    except UnicodeDecodeError as error:
        raise SapwoodError(f"{path}: not UTF-8 text ({error.reason})") from error
    except OSError as error:
        raise SapwoodError(f"{path}: {error.strerror}; name files of text") from error
