"""`tic-manifest clean`: remove what a work folder keeps, and say how much that was."""

from __future__ import annotations

import os
import shutil
import sys
from pathlib import Path

import click

from tic_manifest.adapters.progress import human
from tic_manifest.cli.wiring import work_folder, work_option
from tic_manifest.errors import UnavailableError

KEPT = ("store", "layout", "receipts", "logs", "lock.json")
"""The build's log is evidence that its receipt names."""
PASSING = ("runs", "build", "tmp")


@click.command("clean")
@click.option("--all", "everything", is_flag=True, help="also store, layout, receipts and lock")
@work_option
def command(everything: bool, work_dir: Path) -> None:
    """Remove run outputs and build leftovers of the work folder; with --all all of it."""
    work = work_folder(work_dir)
    if not work.root.is_dir():
        sys.stdout.write("nothing to free: there is no work folder\n")
        return
    names = (*PASSING, *KEPT) if everything else PASSING
    with work.writing():
        freed = {name: _remove(work.root / name) for name in names}
    for name, size in freed.items():
        if size:
            sys.stdout.write(f"{name}: freed {size} bytes ({human(size)})\n")
    total = sum(freed.values())
    sys.stdout.write(f"freed {total} bytes ({human(total)})\n")


def _remove(path: Path) -> int:
    if not path.is_symlink() and not path.exists():
        return 0
    size = _size(path)
    try:
        if path.is_dir() and not path.is_symlink():
            shutil.rmtree(path)
        else:
            path.unlink()
    except OSError as error:
        raise UnavailableError("RIGHTS", "cannot remove", where=str(path), actual=str(error)) from error
    return size


def _size(path: Path) -> int:
    """Bytes of disk, hard links counted once."""
    seen: set[tuple[int, int]] = set()
    total = 0
    for folder, _, names in os.walk(path) if path.is_dir() else [(str(path.parent), [], [path.name])]:
        for name in names:
            found = os.lstat(os.path.join(folder, name))
            if (found.st_dev, found.st_ino) not in seen:
                seen.add((found.st_dev, found.st_ino))
                total += found.st_blocks * 512
    return total
