"""``sapwood bench``: measurements. One sub-command a file; each adds itself below."""

from __future__ import annotations

import typer

from sapwood.cli.bench import (
    decode,
    double_buffer,
    draft,
    kernels,
    memory,
    report,
    suite,
    trace,
    tree,
)

app = typer.Typer(
    help="Measure speed. Modes and hosts are interleaved in one run, so that drift hits all alike.",
    epilog="Example:  sapwood bench decode --repeats 5 --json",
    no_args_is_help=True,
    rich_markup_mode="rich",
)
app.command("decode", epilog=decode.EXAMPLE)(decode.decode)
app.command("double-buffer", epilog=double_buffer.EXAMPLE)(double_buffer.double_buffer)
app.command("draft", epilog=draft.EXAMPLE)(draft.draft)
app.command("kernels", epilog=kernels.EXAMPLE)(kernels.kernels)
app.command("memory", epilog=memory.EXAMPLE)(memory.memory)
app.command("report", epilog=report.EXAMPLE)(report.report)
app.command("suite", epilog=suite.EXAMPLE)(suite.suite)
app.command("trace", epilog=trace.EXAMPLE)(trace.trace)
app.command("tree", epilog=tree.EXAMPLE)(tree.tree)
