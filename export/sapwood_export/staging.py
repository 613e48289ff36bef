"""Folders that appear whole or not at all."""

from __future__ import annotations

import errno
import fcntl
import glob
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

    Whatever ends the block otherwise, Ctrl-C included, removes it; what a process left that was
    killed goes with the next use of the same output. An existing output is refused without
    ``force``; with it, only a bundle or an empty folder is replaced, and only at the end.
    """
    check_output(output, force=force)
    try:
        output.parent.mkdir(parents=True, exist_ok=True)
        _remove_leftovers(output)
        check_output(output, force=force)  # one may have come back
        with _hidden_folder(output, "partial") as staging:
            staging.chmod(0o777 & ~_umask())
            yield staging
            _replace(staging, output, force=force)
    except OSError as error:
        raise _failed(output, error) from None


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
    with _hidden_folder(output, "previous") as previous:
        moved_away = previous / output.name
        output.rename(moved_away)
        try:
            staging.rename(output)
        except BaseException:
            moved_away.rename(output)
            raise


@contextmanager
def _hidden_folder(output: Path, kind: str) -> Iterator[Path]:
    """A new folder beside ``output``, gone when the block ends. It is locked while its process
    lives, which is how others know."""
    folder = Path(tempfile.mkdtemp(prefix=f".{output.name}.{kind}-", dir=output.parent))
    lock = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX)
        yield folder
    finally:
        shutil.rmtree(folder, ignore_errors=True)
        os.close(lock)


def _remove_leftovers(output: Path) -> None:
    """Removes what processes that were killed left beside ``output``. A bundle that one of them had
    moved away, and not yet replaced, comes back."""
    for kind in ("previous", "partial"):
        for folder in output.parent.glob(f".{glob.escape(output.name)}.{kind}-*"):
            if not folder.is_dir() or _in_use(folder):
                continue
            moved_away = folder / output.name
            if kind == "previous" and moved_away.is_dir() and not os.path.lexists(output):
                moved_away.rename(output)
            shutil.rmtree(folder, ignore_errors=True)


def _in_use(folder: Path) -> bool:
    lock = os.open(folder, os.O_RDONLY)
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        return True
    finally:
        os.close(lock)
    return False


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
