"""Entry point of the ``sapwood`` command: which sub-commands there are, and how a run ends.

A person's mistake ends in one line on standard error and status 2; Ctrl-C in 130; a pipe that the
reader closed ends it quietly. A traceback is always a bug of ours.
"""

from __future__ import annotations

import contextlib
import errno
import os
import resource
import signal
import sys
from collections.abc import Sequence
from types import FrameType
from typing import Any, NoReturn

import typer

from sapwood.cli import chat, distill, doctor, export, generate, inspect, ngram, plan, tune, verify
from sapwood.cli.bench import app as bench_app
from sapwood.cli.trace import app as trace_app
from sapwood.errors import SapwoodError

INTERRUPTED = 130
TERMINATED = 143
PIPE_CLOSED = 141  # what a shell reports for a program that SIGPIPE ended

app = typer.Typer(
    name="sapwood",
    help="Lossless tree-speculative decoding: export models, run them, and see what they do.",
    epilog="Example:  sapwood generate --prompt 'Explain photosynthesis to a child.'",
    no_args_is_help=True,
    add_completion=False,
    rich_markup_mode="rich",
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["--help", "-h"]},
)
app.command("export", epilog=export.EXAMPLE)(export.export)
app.command("generate", epilog=generate.EXAMPLE)(generate.generate)
app.command("chat", epilog=chat.EXAMPLE)(chat.chat)
app.command("inspect", epilog=inspect.EXAMPLE)(inspect.inspect)
app.command("distill", epilog=distill.EXAMPLE)(distill.distill)
app.command("tune", epilog=tune.EXAMPLE)(tune.tune)
app.command("plan", epilog=plan.EXAMPLE)(plan.plan)
app.command("verify", epilog=verify.EXAMPLE)(verify.verify)
app.command("doctor", epilog=doctor.EXAMPLE)(doctor.doctor)
app.add_typer(ngram.app, name="ngram")
app.add_typer(bench_app, name="bench")
app.add_typer(trace_app, name="trace")


@app.callback(invoke_without_command=True)
def _root(
    context: typer.Context,
    version: bool = typer.Option(False, "--version", help="Print the version and stop."),
) -> None:
    if version:
        from sapwood import __version__

        print(f"sapwood {__version__}")
        raise typer.Exit
    if context.invoked_subcommand is None:
        raise SapwoodError("name a command; `sapwood --help` lists them")


def run(arguments: Sequence[str]) -> int:
    """Runs one command line and returns its exit status."""
    command: Any = typer.main.get_command(app)
    try:
        # make_context and invoke, not main(): main() prints usage errors over several lines and
        # turns a closed pipe into status 1.
        with command.make_context("sapwood", list(arguments)) as context:
            command.invoke(context)
        sys.stdout.flush()
    except SapwoodError as error:
        return _refuse(str(error), error.exit_status)
    except KeyboardInterrupt:
        return INTERRUPTED
    except BrokenPipeError:
        return _close_quietly()
    except OSError as error:
        if error.errno == errno.EPIPE:
            return _close_quietly()
        return _refuse(_describe_os_error(error), SapwoodError.exit_status)
    except MemoryError:
        return _refuse("out of memory; use a smaller model or --context-length", 2)
    except Exception as error:
        return _usage_status(error)
    return 0


def _usage_status(error: Exception) -> int:
    """Status of an exception that the command-line parser raised; any other goes on.

    typer carries its own copy of click in some versions and the real one in others, so they are
    told by what they can do, not by their class.
    """
    if hasattr(error, "format_message"):
        message = str(error.format_message())
        if message.startswith("Got unexpected extra argument"):
            # Not repeated: they may be the words of a prompt that lacks its quotation marks.
            message = "There is an argument too many; does a text lack its quotation marks?"
        context = getattr(error, "ctx", None)
        where = context.command_path if context is not None else "sapwood"
        return _refuse(f"{message} See `{where} --help`.", SapwoodError.exit_status)
    exit_code = getattr(error, "exit_code", None)
    if isinstance(exit_code, int):
        return exit_code
    if type(error).__name__ == "Abort":
        return INTERRUPTED
    raise error


def _describe_os_error(error: OSError) -> str:
    what = error.strerror or str(error)
    where = f"{error.filename}: " if error.filename else ""
    if error.errno == errno.ENOSPC:
        return f"{where}no space left on the disk; free some and run it again"
    return f"{where}{what}"


def _refuse(message: str, status: int) -> int:
    one_line = " ".join(message.split())
    # The reader of standard error may be gone; there is nobody left to tell.
    with contextlib.suppress(OSError):
        print(f"sapwood: {one_line}", file=sys.stderr, flush=True)
    return status


def _close_quietly() -> int:
    # Python flushes standard output once more at exit; give it somewhere to go.
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)
    return PIPE_CLOSED


def _on_terminate(_signal: int, _frame: FrameType | None) -> NoReturn:
    raise SystemExit(TERMINATED)  # unwinds, so that half-written files go


def main() -> NoReturn:
    """What the ``sapwood`` script calls."""
    # A core file would hold whatever is in memory: prompts and answers.
    resource.setrlimit(resource.RLIMIT_CORE, (0, resource.getrlimit(resource.RLIMIT_CORE)[1]))
    signal.signal(signal.SIGTERM, _on_terminate)
    sys.exit(run(sys.argv[1:]))
