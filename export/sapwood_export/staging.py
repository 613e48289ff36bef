"""Folders that appear whole or not at all."""

from __future__ import annotations

import errno
import os
import shutil
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from sapwood.errors import SapwoodError

MANIFEST = "manifest.json"  # what marks a folder as a bundle, and so as ours to replace


@contextmanager
def staged_folder(output: Path, *, force: bool) -> Iterator[Path]:
    """A temporary folder beside ``output`` that takes its name when the block ends well.

    Whatever ends the block otherwise, Ctrl-C included, removes it. An existing output is refused
    without ``force``; with it, only a bundle or an empty folder is replaced, and only at the end.
    """
    check_output(output, force=force)
    try:
        output.parent.mkdir(parents=True, exist_ok=True)
        staging = Path(tempfile.mkdtemp(prefix=f".{output.name}.partial-", dir=output.parent))
    except OSError as error:
        raise _failed(output, error) from None
    try:
        staging.chmod(0o777 & ~_umask())
        yield staging
        _replace(staging, output, force=force)
    except OSError as error:
        raise _failed(output, error) from None
    finally:
        shutil.rmtree(staging, ignore_errors=True)


def check_output(output: Path, *, force: bool) -> None:
    """Refuses an output that may not be written, before any work is done."""
    if not output.name:
        raise SapwoodError(f"{output}: not a name for a new folder")
    ancestor = next(parent for parent in output.parents if os.path.lexists(parent))
    if not ancestor.is_dir():
        raise SapwoodError(f"{output}: {ancestor} is not a folder; choose another output")
    if not os.path.lexists(output):
        return
    if not output.is_dir():
        raise SapwoodError(f"{output}: exists and is not a folder; choose another output")
    if not force:
        raise SapwoodError(f"{output}: exists; use --force to replace it, or choose another output")
    if any(output.iterdir()) and not (output / MANIFEST).is_file():
        raise SapwoodError(
            f"{output}: exists and is not a bundle, so it is not replaced; choose another output"
        )


def check_space(folder: Path, needed: int) -> None:
    """Refuses to start what cannot fit: ``needed`` bytes on the disk of an existing folder."""
    free = shutil.disk_usage(folder).free
    if free < needed:
        raise SapwoodError(
            f"{folder.parent}: no space left: {_megabytes(needed)} are needed, "
            f"{_megabytes(free)} are free"
        )


def _replace(staging: Path, output: Path, *, force: bool) -> None:
    if not os.path.lexists(output):
        staging.rename(output)
        return
    check_output(output, force=force)  # it may have appeared in the meantime
    previous = Path(tempfile.mkdtemp(prefix=f".{output.name}.previous-", dir=output.parent))
    output.rename(previous / output.name)
    try:
        staging.rename(output)
    except BaseException:
        (previous / output.name).rename(output)
        raise
    finally:
        shutil.rmtree(previous, ignore_errors=True)


def _failed(output: Path, error: OSError) -> SapwoodError:
    if error.errno in (errno.ENOSPC, errno.EDQUOT):
        return SapwoodError(f"{output}: no space left on the disk; nothing was written")
    reason = error.strerror or str(error)
    return SapwoodError(f"{output}: cannot be written: {reason}; nothing was written")


def _umask() -> int:
    current = os.umask(0)
    os.umask(current)
    return current


def _megabytes(size: int) -> str:
    return f"{size / 1e6:.1f} MB"
